//! What a forget takes out of a queue that lives apart from the ledger: turns that wait, and turns among the dead letters.
//! A store that is both needs no such port: there [`crate::erasure::Erasure`] removes all of it in one transaction.

use std::collections::HashSet;

use async_trait::async_trait;
use memfleet_domain::Scope;
use memfleet_domain::ids::{BatchId, TurnId};
use memfleet_domain::ingestion::Batch;
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::AcceptedTurn;

use crate::filter::TurnFilter;
use crate::store::Result;

/// Which of the batches go that nobody can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    /// They may hold the very words that are to be forgotten, and must not keep the others from going.
    All,
    /// Those that are from before an instant themselves.
    Before(Timestamp),
}

impl Unreadable {
    /// Whether one goes that was accepted, or given up, at `since`.
    pub fn goes(self, since: Timestamp) -> bool {
        match self {
            Self::All => true,
            Self::Before(instant) => since < instant,
        }
    }
}

/// A batch of which turns go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parted {
    /// Position of acceptance.
    pub acceptance: u64,
    /// The batch.
    pub batch: BatchId,
    /// The turns that go; none where nobody can tell what it holds.
    pub gone: Vec<TurnId>,
    /// How many stay.
    pub left: usize,
}

impl Parted {
    /// The turns of a batch that match; nothing where none does.
    pub fn of(batch: &Batch, acceptance: u64, filter: &TurnFilter) -> Option<Self> {
        Self::where_goes(batch, acceptance, |turn| filter.passes(turn))
    }

    /// The turns of a batch that go; nothing where none does.
    pub fn where_goes(
        batch: &Batch,
        acceptance: u64,
        goes: impl Fn(&AcceptedTurn) -> bool,
    ) -> Option<Self> {
        let going = batch.turns.iter().filter(|turn| goes(turn));
        let gone: Vec<_> = going.map(|turn| turn.id).collect();
        (!gone.is_empty()).then(|| Self {
            acceptance,
            batch: batch.id,
            left: batch.turns.len() - gone.len(),
            gone,
        })
    }

    /// A batch that goes though nobody can read it.
    pub fn unreadable(batch: BatchId, acceptance: u64) -> Self {
        Self {
            acceptance,
            batch,
            gone: Vec::new(),
            left: 0,
        }
    }

    /// Whether nothing is left of it.
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Whether nobody can tell what it holds.
    pub fn is_unreadable(&self) -> bool {
        self.gone.is_empty()
    }
}

/// What of a queue a forget means.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Matching {
    /// Batches that wait, or are in the hands of a worker.
    pub queued: Vec<Parted>,
    /// Dead letters.
    pub letters: Vec<Parted>,
}

impl Matching {
    /// Whether nothing goes.
    pub fn is_empty(&self) -> bool {
        self.queued.is_empty() && self.letters.is_empty()
    }

    /// How many turns go.
    pub fn turns(&self) -> u64 {
        self.all().map(|parted| parted.gone.len() as u64).sum()
    }

    /// How many batches go that cannot be read.
    pub fn unreadable(&self) -> u64 {
        self.all().filter(|parted| parted.is_unreadable()).count() as u64
    }

    /// Every batch that is touched.
    pub fn all(&self) -> impl Iterator<Item = &Parted> {
        self.queued.iter().chain(&self.letters)
    }
}

/// What an erasure asks of a queue apart. Order of safety: what matches is looked up, the ledger buries the turns in one
/// transaction, then they are withdrawn here. A crash in between leaves deliveries that the ledger's tombstones make nothing of.
#[async_trait]
pub trait Undelivered: Send + Sync {
    /// A position of acceptance that everything accepted by now is at or before, and that everything accepted from now on is after.
    async fn last_acceptance(&self) -> Result<u64>;

    /// Batches of the space that hold turns which match, and those that nobody can read.
    async fn matching(
        &self,
        scope: &Scope,
        filter: &TurnFilter,
        unreadable: Unreadable,
    ) -> Result<Matching>;

    /// Takes these turns out: a batch of which turns are left waits with them at its old position, and is a retry of what was
    /// published. What is gone by now is left alone.
    async fn withdraw(&self, scope: &Scope, matching: &Matching) -> Result<()>;

    /// Which of these spaces have dead letters.
    async fn with_letters(&self, scopes: &[Scope]) -> Result<HashSet<Scope>>;
}
