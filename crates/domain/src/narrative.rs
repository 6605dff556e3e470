//! The narrative: one story that a space tells over weeks, as a tree of plot, subplots and fragments (Amory section 3). A fragment is what
//! was said of the story at a stretch. Both are derivations: a fragment is written when it is bound, a narrative when its headlines
//! change, so that what is written grows with what is said, and not with its square.

use serde::{Deserialize, Serialize};

use crate::ids::{DerivationId, SessionId, Speaker};
use crate::time::TimeRange;

/// What was said at a stretch, in one session, of one story.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fragment {
    /// Whose.
    pub narrative: DerivationId,
    /// Its place among the narrative's subplots; absent until it is consolidated.
    pub subplot: Option<u32>,
    /// Its session.
    pub session: SessionId,
    /// What it is about, in the words of its opening turn.
    pub headline: String,
    /// Event time of its first and last turn, where known.
    pub span: TimeRange,
    /// Who bound it (`rules-1`, or a model and the version of its prompt).
    pub binder: String,
}

/// Whether a story goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Momentum {
    /// It was spoken of lately.
    #[default]
    Active,
    /// Nothing was said of it for a span of turns: it is consolidated. A new fragment makes it active again.
    Inactive,
}

/// A part of a plot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subplot {
    /// What its fragments are about.
    pub headline: String,
    /// Who wrote the headline (`rules-1`, or a model and the version of its prompt).
    #[serde(default = "by_rules")]
    pub author: String,
}

/// Who wrote the subplots that were written before their author was noted.
fn by_rules() -> String {
    "rules-1".to_owned()
}

/// A story.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Narrative {
    /// What it is about.
    pub headline: String,
    /// Whose story it is.
    pub owner: Speaker,
    /// Who takes part, in the order of their first turn.
    pub characters: Vec<Speaker>,
    /// The parts of its plot, in the order of their first fragment.
    pub subplots: Vec<Subplot>,
    /// Whether it goes on.
    pub momentum: Momentum,
    /// Who wrote its headlines (`rules-1`, or a model and the version of its prompt).
    pub author: String,
}

impl Narrative {
    /// The part of the plot that a fragment of it tells, where it was put together.
    pub fn subplot_of(&self, fragment: &Fragment) -> Option<&Subplot> {
        self.subplots.get(fragment.subplot? as usize)
    }
}
