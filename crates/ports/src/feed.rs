//! How a search index follows the ledger: changes after a sequence number, and token vectors read in batches.

use std::sync::Arc;

use async_trait::async_trait;
use memfleet_domain::Scope;
use memfleet_domain::derivation::Kind;
use memfleet_domain::embedding::{EmbeddingSpace, TokenVectors};
use memfleet_domain::ids::{DerivationId, SessionId, Speaker, TurnId};
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::Role;

use crate::ledger::TermCount;
use crate::store::Result;

/// Where a turn stands in its session: position of acceptance, then place in the batch.
pub type Order = (u64, u32);

/// A turn as the index needs it.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexedTurn {
    /// The turn.
    pub id: TurnId,
    /// Its session.
    pub session: SessionId,
    /// Its place in the session.
    pub order: Order,
    /// Who spoke.
    pub speaker: Speaker,
    /// In which part.
    pub role: Role,
    /// Event time τ.
    pub event_time: Option<Timestamp>,
    /// Recorded time.
    pub recorded_at: Timestamp,
    /// When a newer turn replaced it.
    pub replaced_at: Option<Timestamp>,
    /// Number of its first passage in the space; the others follow it.
    pub first_passage: u32,
    /// Its passages.
    pub passages: Vec<IndexedPassage>,
}

/// A passage as the index needs it.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexedPassage {
    /// Length of its text in bytes.
    pub length: u32,
    /// How many terms it has, with repeats.
    pub words: u32,
    /// Analyzed terms with their counts.
    pub terms: Vec<TermCount>,
    /// Features of the prior.
    pub features: Vec<f32>,
    /// Its sentence vector, int8; absent while the vectors are missing.
    pub sentence: Option<Vec<i8>>,
    /// The distinct word pieces of its text, for document frequencies.
    pub pieces: Vec<u32>,
}

/// What is derived, as the index needs it: found like a passage, on behalf of the turns that it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexedDerivation {
    /// The derivation.
    pub id: DerivationId,
    /// What it is.
    pub kind: Kind,
    /// The turns that it comes from: of a fact first the one that states it, of an episode all in order.
    pub turns: Vec<TurnId>,
    /// Its number, one of those of the passages of the space.
    pub number: u32,
    /// What it is found by: a fact's sentence, an episode's head, a headline.
    pub passage: IndexedPassage,
    /// Keys of the entities that a fact relates, its subject first; of anything else none.
    pub entities: Vec<String>,
}

/// How many terms there are, with repeats.
pub fn words(terms: &[TermCount]) -> u32 {
    terms.iter().map(|&(_, count)| u32::from(count)).sum()
}

/// One step of a space's history.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A turn was stored, or changed (replaced, vectors attached): the index takes this state.
    Stored(Box<IndexedTurn>),
    /// A turn was forgotten, and what was derived from it with it.
    Forgotten(TurnId),
    /// Something was derived, or changed: the index takes this state.
    Derived(Box<IndexedDerivation>),
    /// Something derived holds at no instant any more, or is gone: its time was over, or one of its versions drew on a turn that was
    /// forgotten.
    Withdrawn(DerivationId),
}

/// Changes of a space in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Changes {
    /// The changes.
    pub changes: Vec<Change>,
    /// The sequence number that the index has reached with them.
    pub reached: u64,
    /// Whether there may be more.
    pub more: bool,
}

/// What the retriever reads.
#[async_trait]
pub trait IndexFeed: Send + Sync {
    /// The space's change sequence; 0 for a space that was never written to. It never goes back: a space that was forgotten
    /// as a whole goes on counting, and its tombstones empty an index that followed it.
    async fn head(&self, scope: &Scope) -> Result<u64>;

    /// Changes after `after`, oldest first, about `limit` of them, with the vectors of the space's
    /// served embedding space. What changed twice comes once, in its last state.
    async fn changes_after(&self, scope: &Scope, after: u64, limit: u32) -> Result<Changes> {
        self.changes_in(scope, None, after, limit).await
    }

    /// Like [`Self::changes_after`], with vectors of this embedding space and of no other (absent:
    /// the served one). A passage that has none there has none at all.
    async fn changes_in(
        &self,
        scope: &Scope,
        embedding: Option<&EmbeddingSpace>,
        after: u64,
        limit: u32,
    ) -> Result<Changes>;

    /// These turns in their present state, in any order, with vectors of the served embedding
    /// space; unknown ids are left out.
    async fn indexed(&self, scope: &Scope, ids: &[TurnId]) -> Result<Vec<IndexedTurn>>;

    /// Token vectors of passages by their numbers, in the order asked, of this embedding space and
    /// of no other (absent: the served one); `None` where there are none.
    async fn token_vectors(
        &self,
        scope: &Scope,
        embedding: Option<&EmbeddingSpace>,
        passages: &[u32],
    ) -> Result<Vec<Option<Arc<TokenVectors>>>>;

    /// The turns that carry all these labels.
    async fn with_metadata(
        &self,
        scope: &Scope,
        labels: &[(String, String)],
    ) -> Result<Vec<TurnId>>;
}
