//! Search, as a service: a query in, ranked turns out.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_domain::derivation::Derivation;
use memfleet_domain::embedding::{EmbeddingSpace, QueryVectors};
use memfleet_domain::ids::{DerivationId, SessionId, SpaceId, Speaker, TurnId};
use memfleet_domain::intent::Intent;
use memfleet_domain::quality::SearchQuality;
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::Turn;
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::embedder::Embedder;
use crate::filter::TurnFilter;

/// What to look for, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The words to find memory for. Not empty.
    pub text: String,
    /// The spaces to search as one; at least one. Language and time zone of the first are those of the query.
    pub spaces: Vec<SpaceId>,
    /// Which turns may be found.
    pub filter: TurnFilter,
    /// How many turns, best first; 1 to 1,000.
    pub k: u32,
    /// Turns before and after each hit to bring along, 0 to 10. They are context, not hits.
    pub neighbours: u32,
    /// What "last week" is relative to. Default: the event time of the last turn that may be found.
    pub now: Option<Timestamp>,
    /// The conversation that it is asked in, in the first of the spaces: what its pronouns stand for is looked for there.
    pub session: Option<SessionId>,
    /// What kind of memory it asks for; absent: as its wording tells.
    pub intent: Option<Intent>,
    /// Cost that the search may have; absent: as the node is configured.
    pub quality: Option<SearchQuality>,
    /// Asks for the score breakdown of each hit, and for the candidates.
    pub explain: bool,
    /// Its words as vectors, where who asks has them already; they are used only where they are what the retriever would ask for.
    pub vectors: Option<Arc<Embedded>>,
}

/// A text and its vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Embedded {
    /// What was embedded.
    pub text: String,
    /// Where the vectors live.
    pub space: EmbeddingSpace,
    /// The vectors.
    pub vectors: QueryVectors,
}

impl Embedded {
    /// Has a text embedded.
    pub async fn by(embedder: &dyn Embedder, text: String) -> Result<Self, Fault> {
        let vectors = embedder.embed_query(text.clone()).await?;
        let space = embedder.space().await?;
        Ok(Self {
            text,
            space,
            vectors,
        })
    }
}

/// One signal of a score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SignalScore {
    /// Name as in docs/retrieval.md, for example `maxsim_window`.
    pub signal: std::borrow::Cow<'static, str>,
    /// The signal before weighting (z-score where the signal is one).
    pub value: f32,
    /// What it adds to the score.
    pub contribution: f32,
}

/// A turn that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Where.
    pub space: SpaceId,
    /// The turn.
    pub turn: Turn,
    /// Higher is better; comparable within one answer only.
    pub score: f32,
    /// The probability, 0 to 1, that the turn bears on the query, as [`Found::scorer`] tells it: comparable over answers of that
    /// scorer. Absent where the scorer lacks what it needs, for example of a turn that is not embedded yet.
    pub relevance: Option<f32>,
    /// Byte range of the passage in the turn's searchable text that matched best.
    pub passage: (u32, u32),
    /// Why, when asked for.
    pub signals: Vec<SignalScore>,
    /// Turns of the same session around it, oldest first, itself left out.
    pub neighbours: Vec<Turn>,
    /// The facts that the turn states, as they are known when the query asks for; those that hold no longer among them.
    pub facts: Vec<Derivation>,
    /// The one of them that the query asks for and that holds no longer, or that a caller corrected.
    pub outdated: Option<DerivationId>,
}

impl Hit {
    /// The fact that the query asks for and that holds no longer, or that a caller corrected.
    pub fn outdated_fact(&self) -> Option<&Derivation> {
        let id = self.outdated?;
        self.facts.iter().find(|fact| fact.id == id)
    }
}

/// The answer to a query.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// Best first.
    pub hits: Vec<Hit>,
    /// What was missing, by name, for example `vectors: 12 turns are not embedded yet`; empty when all was there.
    pub degraded: Vec<String>,
    /// How many turns were eligible.
    pub searched: u64,
    /// Name and version of what told the relevance of the hits, for example `late-interaction-1`; empty where nothing did.
    pub scorer: String,
    /// The query as it was searched, where its conversation made it another (AMA section 3.2, u′).
    pub understood: Option<String>,
    /// The candidates and their ranks, when asked for.
    pub explanation: Option<SearchExplanation>,
}

/// Candidates that are no hits which an explanation shows at most, best first.
pub const SHOWN_BEHIND_HITS: usize = 100;

/// Longest excerpt of a candidate, in bytes.
pub const TRACE_EXCERPT_BYTES: usize = 200;

/// Candidates of a search: where each came from, and its rank after every stage (docs/retrieval.md,
/// Explanation).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SearchExplanation {
    /// How many candidates there were.
    pub candidates: u32,
    /// True where every turn that may be found was a candidate: searches of few turns have no first
    /// stage.
    pub is_exhaustive: bool,
    /// The hits, and at most [`SHOWN_BEHIND_HITS`] candidates behind them, by rank.
    pub shown: Vec<CandidateTrace>,
}

impl SearchExplanation {
    /// Notes which candidates are hits, and at which place. Of the others the best
    /// [`SHOWN_BEHIND_HITS`] stay.
    pub fn settle(&mut self, hits: &[Hit]) {
        let places = hits.iter().zip(1..);
        let places = places.map(|(hit, place)| ((&hit.space, hit.turn.accepted.id), place));
        let places: HashMap<_, u32> = places.collect();
        let mut others = 0;
        self.shown.retain_mut(|candidate| {
            candidate.hit = places.get(&(&candidate.space, candidate.turn)).copied();
            others += usize::from(candidate.hit.is_none());
            candidate.hit.is_some() || others <= SHOWN_BEHIND_HITS
        });
    }
}

/// A candidate, and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct CandidateTrace {
    /// The space it is in.
    pub space: SpaceId,
    /// The turn.
    pub turn: TurnId,
    /// The conversation that it is part of.
    pub session: SessionId,
    /// Who said it.
    pub speaker: Speaker,
    /// How its text begins, at most [`TRACE_EXCERPT_BYTES`].
    pub excerpt: String,
    /// Its place by score among all candidates, from 1.
    pub rank: u32,
    /// The score that places it; a hit that was moved afterwards has another.
    pub score: f32,
    /// As that of a hit.
    pub relevance: Option<f32>,
    /// Its place among the hits, from 1; absent: it is none.
    pub hit: Option<u32>,
    /// True where it is left out because its speaker says the same in a better hit.
    pub is_copy: bool,
    /// The sources of the first stage that name it.
    pub sources: Vec<StageRank>,
    /// Its ranks among all candidates after the stages before the last.
    pub stages: Vec<StageRank>,
    /// The breakdown of its score.
    pub signals: Vec<SignalScore>,
}

/// Rank of a candidate in a source of the first stage, or after a stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageRank {
    /// Name as in docs/retrieval.md, for example `words` or `late_interaction`.
    pub stage: std::borrow::Cow<'static, str>,
    /// From 1.
    pub rank: u32,
    /// The score that it ranks by; absent where the source only lists turns.
    pub score: Option<f32>,
}

/// The retriever role.
#[async_trait]
pub trait Retriever: Send + Sync {
    /// Ranks the turns that pass the filter. An empty answer is no error; a space that does not exist is.
    async fn search(&self, context: &Context, query: &Query) -> Result<Found, Fault>;
}
