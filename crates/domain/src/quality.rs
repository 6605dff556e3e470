//! How much a search may cost for the sake of what it finds.

use serde::{Deserialize, Serialize};

/// A validated configuration of searches (docs/retrieval.md, Quality).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum SearchQuality {
    /// By the vectors of one model.
    #[default]
    Fast,
    /// By those of two models, in spaces that have both.
    Balanced,
    /// As balanced, and by answers that a language model imagines where nothing relevant
    /// is found.
    Thorough,
}
