//! The episode: one matter of a conversation, over a range of its turns, with a summary (AMA section 3.1, episode memory E).
//! A derivation like a fact: it names its turns and changes by new versions only.

use serde::{Deserialize, Serialize};

use crate::ids::{SessionId, Speaker};
use crate::time::TimeRange;

/// Why an episode ended where it did: the conditions of AMA's trigger T.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// The next turn opens another matter.
    TopicShift,
    /// A turn asked for it ("let us sum up", "remember this conversation").
    Request,
    /// The window was full.
    Saturation,
    /// The session ended, or has been quiet.
    Pause,
}

/// An episode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Episode {
    /// Its session.
    pub session: SessionId,
    /// Its head: a headline for people, and what it is found by.
    pub title: String,
    /// What was said, in a few sentences.
    pub summary: String,
    /// Who took part, in the order of their first turn.
    pub participants: Vec<Speaker>,
    /// Event time of its first and last turn, where known.
    pub span: TimeRange,
    /// Why it ended there; absent while it goes on.
    pub trigger: Option<Trigger>,
    /// Who wrote the summary (`rules-1`, or a model and the version of its prompt).
    pub extractor: String,
}
