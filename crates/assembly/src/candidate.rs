//! What may enter a block.

use crate::block::Reason;
use chrono::{DateTime, Utc};
use std::cmp::Ordering;

/// A memory that retrieval found: a turn, or something derived from turns. Conversion from domain types is the caller's.
///
/// The default is an empty text of unknown origin; name the fields that are known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate<'a> {
    /// Its id; equal ids are the same memory. Empty: it has none, and is like no other.
    pub id: &'a str,
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
    /// another number of sentences: the turn is never cut to its relevant sentences.
    pub sentence_scores: Option<&'a [f32]>,
    /// The probability that it is relevant, as the scorer in the options calibrates it: what the threshold is held against. `None`: it was not
    /// scored, and the threshold does not apply. Not a finite number: the candidate is left out.
    pub relevance: Option<f32>,
    /// What kind of memory it is.
    pub granularity: Granularity,
    /// Where its words come from.
    pub trust: Trust,
    /// The id of the memory system that gave it; empty for the only one. Never taken from content (AMP item 97).
    pub source: &'a str,
    /// The ids of the memories that it was derived from.
    pub lineage: &'a [&'a str],
    /// When it holds, where that is known.
    pub valid: Validity,
    /// The ids of the memories that it replaces.
    pub supersedes: &'a [&'a str],
    /// The id of the memory that replaces it.
    pub superseded_by: Option<&'a str>,
    /// The id of the memory that says how it is now: this one enters only beside that one, however
    /// little room there is.
    pub successor: Option<&'a str>,
    /// Why the caller keeps it out, where it does: for the record of what was left out.
    pub excluded: Option<Reason>,
}

/// What kind of memory a candidate is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Granularity {
    /// Words as they were said.
    #[default]
    Verbatim,
    /// What happened over a range of turns.
    Episode,
    /// A shorter telling of something longer.
    Summary,
    /// One statement.
    Fact,
    /// Subject, relation and object.
    Triplet,
    /// What is known of a person.
    Profile,
}

impl Granularity {
    /// Its word in a block.
    pub fn word(self) -> &'static str {
        match self {
            Self::Verbatim => "verbatim",
            Self::Episode => "episode",
            Self::Summary => "summary",
            Self::Fact => "fact",
            Self::Triplet => "triplet",
            Self::Profile => "profile",
        }
    }
}

/// Where the words of a candidate come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Trust {
    /// A user of the application typed them.
    User,
    /// The model wrote them.
    Assistant,
    /// A tool gave them back.
    Tool,
    /// They stand on the web or in another document.
    Web,
    /// Nobody can say.
    #[default]
    Unknown,
}

impl Trust {
    /// Its word in a block.
    pub fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Web => "web",
            Self::Unknown => "unknown origin",
        }
    }

    /// Whether strangers may have written it: what tools and the web give (AMP item 112).
    pub fn is_untrusted(self) -> bool {
        matches!(self, Self::Tool | Self::Web)
    }
}

/// When something holds: from the first instant, until the second, which is not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Validity {
    /// When it began to hold, if known.
    pub from: Option<DateTime<Utc>>,
    /// When it ceased to, if it did.
    pub until: Option<DateTime<Utc>>,
}

/// What became of what a turn says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outdated<'a> {
    /// It held until then.
    Since(DateTime<Utc>),
    /// It never held.
    Wrong,
    /// A caller said how it is instead.
    Corrected(&'a str),
}

impl Default for Candidate<'_> {
    fn default() -> Self {
        Self {
            id: "",
            session: 0,
            position: 0,
            speaker: "",
            event_time: None,
            recorded_at: DateTime::UNIX_EPOCH,
            outdated: None,
            text: "",
            score: 0.0,
            sentence_scores: None,
            relevance: None,
            granularity: Granularity::default(),
            trust: Trust::default(),
            source: "",
            lineage: &[],
            valid: Validity::default(),
            supersedes: &[],
            superseded_by: None,
            successor: None,
            excluded: None,
        }
    }
}

impl Candidate<'_> {
    /// Score, then the newer, then id, session and position: a total order that is independent of the order of the input (AMP item 87).
    pub(crate) fn by_score(&self, other: &Self) -> Ordering {
        let score = other.score.total_cmp(&self.score);
        let newer = other.effective_time().cmp(&self.effective_time());
        score
            .then(newer)
            .then_with(|| self.id.cmp(other.id))
            .then_with(|| self.by_place(other))
            .then_with(|| self.source.cmp(other.source))
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
            .then_with(|| self.id.cmp(other.id))
    }
}
