//! What may enter a block.

use chrono::{DateTime, Utc};
use std::cmp::Ordering;

/// A turn that retrieval found. Conversion from domain types is the caller's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate<'a> {
    /// Which session it belongs to: any number that is equal within a session and differs between sessions.
    pub session: u64,
    /// Position inside the session, ascending in time.
    pub position: u64,
    /// Who said it; rendered before the text.
    pub speaker: &'a str,
    /// When it was said (τ), if known: the date that it stands under.
    pub event_time: Option<DateTime<Utc>>,
    /// When it was recorded: what it is ordered by where nothing else is known.
    pub recorded_at: DateTime<Utc>,
    /// Since when it is no longer so, where that is known; rendered before the text.
    pub outdated: Option<Outdated<'a>>,
    /// What was said, verbatim.
    pub text: &'a str,
    /// Relevance, higher is better, on any scale. Not a finite number: the candidate is left out.
    pub score: f32,
    /// Relevance of each sentence of `text`, as `memfleet_language::sentences` cuts it (see `SentenceScorer`). `None`, or
    /// another number of sentences: the turn is never cut to an excerpt.
    pub sentence_scores: Option<&'a [f32]>,
}

/// What became of what a turn says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outdated<'a> {
    /// It held until then.
    Since(DateTime<Utc>),
    /// Something else was told then.
    ChangedBy(DateTime<Utc>),
    /// It never held.
    Wrong,
    /// A caller said how it is instead.
    Corrected(&'a str),
}

impl Candidate<'_> {
    /// Rank order: score, then the newer, then session and position; independent of the order of the input.
    pub(crate) fn by_rank(&self, other: &Self) -> Ordering {
        let score = other.score.total_cmp(&self.score);
        let newer = other.effective_time().cmp(&self.effective_time());
        score.then(newer).then_with(|| self.by_place(other))
    }

    /// When it was said, else when it was recorded.
    pub(crate) fn effective_time(&self) -> DateTime<Utc> {
        self.event_time.unwrap_or(self.recorded_at)
    }

    /// Conversation order inside a session.
    pub(crate) fn by_place(&self, other: &Self) -> Ordering {
        let session = self.session.cmp(&other.session);
        session
            .then(self.position.cmp(&other.position))
            .then_with(|| self.text.cmp(other.text))
    }
}
