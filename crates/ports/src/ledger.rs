//! The ledger: turns, verbatim and append-only, with what makes them findable. One call is one transaction.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use memfleet_domain::Scope;
use memfleet_domain::derivation::Derivation;
use memfleet_domain::embedding::{EmbeddingSpace, PassageVectors};
use memfleet_domain::ids::{BatchId, DerivationId, SessionId, TurnId};
use memfleet_domain::ingestion::{Batch, TurnReceipt};
use memfleet_domain::turn::Turn;

use crate::filter::TurnFilter;
use crate::store::Result;

/// A term of a passage and how often it occurs there.
pub type TermCount = (String, u16);

/// A piece of a turn that is indexed on its own: a turn of up to 700 characters is one passage, a longer one is cut at
/// sentence ends.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Passage {
    /// First byte in the turn's searchable text.
    pub start: u32,
    /// First byte after.
    pub end: u32,
    /// Analyzed terms with their counts, sorted by term.
    pub terms: Vec<TermCount>,
    /// Scale-free features that the prior is made of, by the recipe of the retrieval core; opaque to the store.
    pub features: Vec<f32>,
    /// Absent when the embedder was down; [`Ledger::attach_vectors`] brings them later.
    pub vectors: Option<PassageVectors>,
    /// The embedding space of a derived passage's vectors. Absent: in the embedding space that
    /// its batch names, else in the served one.
    pub embedding_space: Option<Arc<EmbeddingSpace>>,
}

/// A batch with what the constructor made of each turn.
#[derive(Debug, Clone)]
pub struct IndexedBatch {
    /// The batch as it was accepted.
    pub batch: Batch,
    /// Position of acceptance (queue row, stream sequence): the order inside a session follows it.
    pub acceptance: u64,
    /// Passages of each turn, in the order of `batch.turns`; never empty.
    pub passages: Vec<Vec<Passage>>,
    /// Where the vectors live; absent where there are none and nobody could say. Vectors are left
    /// out where the space has vectors of others, and not of this one.
    pub embedding_space: Option<EmbeddingSpace>,
    /// Code of the language that the terms are in; absent while it cannot be told.
    pub language: Option<String>,
}

/// What a commit did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The space's change sequence after it.
    pub change: u64,
    /// One a turn: stored, forgotten meanwhile, or dead-lettered where its external id is taken by other content.
    pub turns: Vec<TurnReceipt>,
}

/// What the ledger knows of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchStatus {
    /// The space's change sequence at which it became visible.
    pub change: u64,
    /// Hash of the accepted payload; absent when its turns were forgotten.
    pub payload_hash: Option<[u8; 32]>,
    /// One a turn.
    pub turns: Vec<TurnReceipt>,
}

/// What a space knows of turns that are about to come.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Known {
    /// Those that it holds.
    pub stored: HashSet<TurnId>,
    /// Turns that it had to forget.
    pub forgotten: HashSet<TurnId>,
}

/// One page of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// What was asked for, in a stable order.
    pub items: Vec<T>,
    /// Where to go on; absent on the last page.
    pub next: Option<PageToken>,
}

/// Where a listing goes on; opaque to callers. Stable while writes go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageToken(pub String);

/// A turn without vectors, to be embedded when the embedder is back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unembedded {
    /// Where it is.
    pub scope: Scope,
    /// The turn.
    pub turn: Turn,
    /// Number of its first passage in the space, and the byte range of each.
    pub first_passage: u32,
    /// Byte ranges of its passages in the searchable text.
    pub ranges: Vec<(u32, u32)>,
}

/// The current version of a derivation that is found by a passage without vectors.
#[derive(Debug, Clone, PartialEq)]
pub struct UnembeddedDerivation {
    /// Where it is.
    pub scope: Scope,
    /// The derivation.
    pub derivation: Derivation,
}

/// A stored text that is found by passages of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextOwner {
    /// A turn.
    Turn(TurnId),
    /// A version of a derivation.
    Derivation(DerivationId, u32),
}

impl fmt::Display for TextOwner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turn(turn) => write!(formatter, "turn {turn}"),
            Self::Derivation(id, version) => write!(formatter, "derivation {id} v{version}"),
        }
    }
}

/// Vectors of a text that was stored without any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextVectors {
    /// The text.
    pub owner: TextOwner,
    /// One a passage, in the order of the passages.
    pub vectors: Vec<PassageVectors>,
}

impl TextVectors {
    /// Vectors of the passages of a turn.
    pub fn of_turn(turn: TurnId, vectors: Vec<PassageVectors>) -> Self {
        Self {
            owner: TextOwner::Turn(turn),
            vectors,
        }
    }
}

/// The turns of every space.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// Stores each batch in the order given, in one transaction, or a large one part by part: its
    /// first turns are found before the last ones are stored, and it is settled with these. A batch
    /// that is already there changes nothing and gives the answer of the first time; only its
    /// dead-lettered turns are tried again. A turn that is already there with the same content is
    /// left alone; one that was forgotten stays forgotten, whatever batch brings it again, unless
    /// its whole space was forgotten before this acceptance. A batch whose whole space was
    /// forgotten after this acceptance leaves nothing at all, no receipt either. The first language
    /// that a batch names stays the space's.
    ///
    /// Dead-lettered are a turn whose id is taken by other content (`EXTERNAL_ID_CONFLICT`, with both hashes) and one that
    /// replaces a turn that the space never held (`REPLACED_TURN_UNKNOWN`).
    ///
    /// Versions of one turn follow each other in the order of acceptance, whichever of them a `replaces` names and whichever is
    /// stored first: the last of them is current.
    async fn commit(&self, batches: Vec<IndexedBatch>) -> Result<Vec<Committed>>;

    /// What became of a batch; absent while it is still queued or when it was never accepted.
    async fn batch(&self, scope: &Scope, batch: BatchId) -> Result<Option<BatchStatus>>;

    /// The turns with these ids, replaced ones too, in the order of the ids; unknown ids are left out.
    async fn turns(&self, scope: &Scope, ids: &[TurnId]) -> Result<Vec<Turn>>;

    /// Which of these turns the space holds, and which it had to forget. A space that was forgotten as a whole begins anew: of
    /// what it held then it knows nothing.
    async fn known(&self, scope: &Scope, ids: &[TurnId]) -> Result<Known>;

    /// The turns that match, ordered by recorded time of their session's first turn, then by position in the session.
    async fn list(
        &self,
        scope: &Scope,
        filter: &TurnFilter,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Turn>>;

    /// The same turns in the order in which they were accepted, across sessions: what replaces a turn comes after it.
    async fn list_accepted(
        &self,
        scope: &Scope,
        filter: &TurnFilter,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Turn>>;

    /// Every version of a turn, oldest first: the turns it replaced and those that replaced it.
    async fn history(&self, scope: &Scope, turn: TurnId) -> Result<Vec<Turn>>;

    /// Up to `limit` turns that stand right before this one in its session, oldest first; replaced ones are left out.
    async fn preceding(&self, scope: &Scope, turn: TurnId, limit: u32) -> Result<Vec<Turn>>;

    /// Up to `limit` turns that a session ends with, oldest first; replaced ones are left out.
    async fn latest(&self, scope: &Scope, session: &SessionId, limit: u32) -> Result<Vec<Turn>>;

    /// The embedding spaces that the store has, or had, vectors of.
    async fn embedding_spaces(&self) -> Result<Vec<EmbeddingSpace>>;

    /// Up to `limit` turns without vectors in `space`, of the spaces that have vectors in it or
    /// none at all.
    async fn without_vectors(&self, space: &EmbeddingSpace, limit: u32) -> Result<Vec<Unembedded>>;

    /// Like [`Self::without_vectors`], of what is derived.
    async fn derivations_without_vectors(
        &self,
        space: &EmbeddingSpace,
        limit: u32,
    ) -> Result<Vec<UnembeddedDerivation>>;

    /// Adds the vectors of texts of one space, in the order given: many texts in one transaction,
    /// and more of them part by part, so that a caller who writes waits for one part at most. A
    /// text has all of its vectors or none. Left alone are texts that are gone by now, versions of
    /// a derivation that another one took the place of, and all texts of a space that has vectors
    /// of other embedding spaces alone. An error leaves the texts of the parts before it stored.
    async fn attach_vectors(
        &self,
        scope: &Scope,
        space: &EmbeddingSpace,
        texts: &[TextVectors],
    ) -> Result<()>;
}
