//! How much a search may cost for the sake of what it finds.

use serde::{Deserialize, Serialize};

/// A validated configuration of searches (docs/retrieval.md, Quality).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum SearchQuality {
    /// The vectors of one small model.
    #[default]
    Fast,
    /// The sentence vectors of a second model beside them.
    Balanced,
    /// Vectors as for balanced, and answers that a language model imagines where nothing relevant
    /// is found.
    Thorough,
}
