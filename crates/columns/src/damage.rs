//! What is stored and cannot be read.

use memfleet_ports::store::StoreError;

/// Shorthand of this crate.
pub type Result<T> = std::result::Result<T, Damage>;

/// A stored value that no version of memfleet writes. Says what is wrong with it, never what it holds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Damage(pub String);

impl From<Damage> for StoreError {
    fn from(Damage(what): Damage) -> Self {
        Self::Damaged(what)
    }
}

/// Shorthand for a sentence about what is wrong.
pub(crate) fn damaged(what: impl Into<String>) -> Damage {
    Damage(what.into())
}
