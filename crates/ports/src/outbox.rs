//! What happened to memory, for roles that work on it afterwards: written with the change itself, told until it was heard. A
//! store that is alone with its roles has no need of it.

use async_trait::async_trait;
use memfleet_domain::Scope;
use memfleet_domain::time::Timestamp;

use crate::store::Result;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Turns were stored.
    Stored,
    /// Turns were forgotten.
    Forgotten,
    /// Versions of facts or episodes were written.
    Derived,
    /// Conflicts between facts were found.
    Conflict,
    /// Conflicts were settled, or left to a caller.
    Refreshed,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::Stored,
        Self::Forgotten,
        Self::Derived,
        Self::Conflict,
        Self::Refreshed,
    ];

    /// As it stands in subjects and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Forgotten => "forgotten",
            // The subject that streams have been made with.
            Self::Derived => "facts",
            Self::Conflict => "conflict",
            Self::Refreshed => "refreshed",
        }
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A change of a space. It names no turn: [`crate::feed::IndexFeed`] tells what changed between the two sequences, and never what
/// is forgotten by now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happening {
    /// Where.
    pub scope: Scope,
    /// What.
    pub kind: Kind,
    /// The space's change sequence before …
    pub after: u64,
    /// … and with it. No two happenings of a space have the same.
    pub change: u64,
    /// When.
    pub at: Timestamp,
}

/// What has not been told yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backlog {
    /// How many.
    pub events: u64,
    /// Since when the oldest waits.
    pub oldest: Option<Timestamp>,
}

/// Hears of what happened.
#[async_trait]
pub trait Audience: Send + Sync {
    /// Durable when it returns. The same happening told again within minutes is one.
    async fn tell(&self, happening: &Happening) -> Result<()>;
}

/// Holds what happened until it was told.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Tells `audience` the oldest `most` happenings, those of a space one after the other in the order of its commits, and lets go
    /// of each that was heard. The answer is how many; none where another process is telling. After an error or a crash
    /// what was not let go of is told again, so each is told at least once.
    async fn relay(&self, audience: &dyn Audience, most: u32) -> Result<u32>;

    /// How much waits.
    async fn backlog(&self) -> Result<Backlog>;
}
