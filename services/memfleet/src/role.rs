//! The roles of a fleet.

use clap::ValueEnum;

/// What a process may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// The public API
    Gateway,
    /// Stores and embeds what was accepted, and derives facts from it
    Constructor,
    /// Searches
    Retriever,
    /// Finds contradictions between facts
    Judge,
    /// Settles them, corrects, forgets, and applies retention periods
    Refresher,
    /// Binds what was said to the stories that it is part of
    Consolidator,
    /// Text to vectors
    Embedder,
}

impl std::fmt::Display for Role {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = self.to_possible_value().expect("no role is hidden");
        formatter.write_str(value.get_name())
    }
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 7] = [
        Self::Gateway,
        Self::Constructor,
        Self::Retriever,
        Self::Judge,
        Self::Refresher,
        Self::Consolidator,
        Self::Embedder,
    ];
}
