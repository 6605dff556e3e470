//! The ingestion queue: durable before `Remember` answers, at least once, in the order of acceptance.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use memfleet_domain::Scope;
use memfleet_domain::ids::{BatchId, SpaceId, TenantId, TurnId};
use memfleet_domain::ingestion::Batch;
use memfleet_domain::time::Timestamp;

use crate::ledger::{Page, PageToken};
use crate::store::{Result, StoreError};

/// How long [`IngestQueue::postpone`] keeps a batch back.
pub const POSTPONED: Duration = Duration::from_millis(100);

/// How often a batch is handed out beside others. A process may have ended in each of these rounds, and nobody knows by which of
/// them: after that a batch is alone in its round.
pub const TOGETHER: u32 = 3;

/// How often a batch is handed out at most: after that it is a dead letter.
pub const TRIES: u32 = 10;

/// Dead letters that a tenant may have, about: of more the oldest go, for good.
pub const LETTERS: u64 = 10_000;

/// Bytes of dead letters that a tenant may have, about: of more the oldest go, for good. The
/// youngest stays, however large it is.
pub const LETTER_BYTES: u64 = 256 << 20;

/// Bytes of dead letters after which those of a tenant are held against [`LETTER_BYTES`] again, as
/// a share of that.
const LETTER_SHARE: u64 = 16;

/// The reason of a batch that was tried so often, and whose tries ended neither well nor in an error.
#[must_use]
pub fn process_died(tries: u32) -> String {
    format!(
        "PROCESS_DIED: the batch was tried {tries} times, and each try ended with the process that made it"
    )
}

/// What `publish` did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Position of acceptance.
    pub acceptance: u64,
    /// Whether this batch was waiting already.
    pub duplicate: bool,
}

/// A batch handed to a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Position of acceptance; also what the worker acknowledges.
    pub acceptance: u64,
    /// How often it was tried, this time included, as far as whoever hands it out can tell: a queue of several processes may count
    /// the tries of this one only.
    pub attempt: u32,
    /// When it was accepted. An import keeps the times at which its turns were recorded; this is not one of them.
    pub accepted_at: Timestamp,
    /// The trace of whoever accepted it, as a W3C `traceparent`; absent where none is recorded.
    pub traceparent: Option<String>,
    /// What the call is named in logs that it was accepted in; absent outside of one.
    pub request_id: Option<String>,
    /// The batch.
    pub batch: Batch,
}

/// A batch, or part of one, that could not be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Position of acceptance.
    pub acceptance: u64,
    /// Only the turns that failed; none where they could not be read.
    pub batch: Batch,
    /// Stable reason (docs/errors.md) and a sentence.
    pub reason: String,
    /// When it was given up.
    pub failed_at: Timestamp,
    /// How often it was tried.
    pub attempts: u32,
}

/// Dead letters that a process buried of each tenant since the tenant's letters were held against
/// their bounds. To hold them against these takes a look at each, so it is done now and then.
#[derive(Debug)]
pub struct LetterTally {
    letters: u64,
    bytes: u64,
    buried: Mutex<HashMap<String, (u64, u64)>>,
}

impl LetterTally {
    /// The bounds are due after so many letters, or after a sixteenth of `most_bytes`.
    #[must_use]
    pub fn new(letters: u64, most_bytes: u64) -> Self {
        Self {
            letters,
            bytes: most_bytes / LETTER_SHARE,
            buried: Mutex::default(),
        }
    }

    /// Counts a letter, and returns true where the bounds are due for its tenant. They are due at
    /// the tenant's first letter in this process, as letters of earlier processes are not counted.
    pub fn count(&self, tenant: &str, bytes: u64) -> bool {
        let mut tenants = self.buried.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((letters, sum)) = tenants.get_mut(tenant) {
            (*letters, *sum) = (*letters + 1, *sum + bytes);
            if *letters < self.letters && *sum < self.bytes {
                return false;
            }
        }
        tenants.insert(tenant.to_owned(), (0, 0));
        true
    }
}

/// Where a batch is that was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the queue, or in the hands of a worker.
    Waiting,
    /// Among the dead letters.
    Buried,
}

/// How full the queue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Depth {
    /// Batches waiting or being worked on.
    pub batches: u64,
    /// Turns in them.
    pub turns: u64,
    /// Bytes that they take.
    pub bytes: u64,
    /// When the oldest of them was accepted.
    pub oldest: Option<Timestamp>,
    /// Dead letters.
    pub dead_letters: u64,
}

impl Depth {
    /// Both together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            batches: self.batches + other.batches,
            turns: self.turns + other.turns,
            bytes: self.bytes + other.bytes,
            oldest: self.oldest.into_iter().chain(other.oldest).min(),
            dead_letters: self.dead_letters + other.dead_letters,
        }
    }
}

/// How full the queue is, of one tenant and of all of them together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Depths {
    /// Of the tenant that was asked for.
    pub own: Depth,
    /// Of every tenant, the operator's business.
    pub all: Depth,
}

/// How much may wait. A tenant may have half of what the others leave, so there is always room for one more; one that has
/// nothing waiting is never refused, whatever the others have: nobody is shut out by a backlog that is not its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// In turns …
    pub turns: u64,
    /// … and in bytes, as [`Depth::bytes`] counts them.
    pub bytes: u64,
}

impl Bounds {
    /// Everything is taken.
    pub const NONE: Self = Self {
        turns: u64::MAX,
        bytes: u64::MAX,
    };

    /// Refuses with [`StoreError::QueueFull`] what would be more than the tenant's share.
    pub fn check(self, depths: &Depths, turns: u64, bytes: u64) -> Result<()> {
        let Depths { own, all } = depths;
        let share = |bound: u64, all: u64, own: u64| bound.saturating_sub(all - own) / 2;
        let max_turns = share(self.turns, all.turns, own.turns);
        let max_bytes = share(self.bytes, all.bytes, own.bytes);
        let fits = own.turns + turns <= max_turns && own.bytes + bytes <= max_bytes;
        if own.batches == 0 || fits {
            return Ok(());
        }
        Err(StoreError::QueueFull {
            turns: own.turns,
            bytes: own.bytes,
            max_turns,
            max_bytes,
        })
    }
}

/// What the ledger tells a queue that lives apart from it.
#[async_trait]
pub trait Accepted: Send + Sync + std::fmt::Debug {
    /// The highest position of acceptance of anything that was stored or forgotten; 0 before the first.
    async fn highest_acceptance(&self) -> Result<u64>;

    /// Which of these turns were forgotten. Of a space that was forgotten as a whole none were.
    async fn forgotten(&self, scope: &Scope, turns: &[TurnId]) -> Result<HashSet<TurnId>>;
}

/// The durable way from the gateway to the constructor.
#[async_trait]
pub trait IngestQueue: Send + Sync {
    /// Durable when it returns. A batch that is waiting already is not added again; the same id with another payload, waiting or
    /// a dead letter, is a [`StoreError::Conflict`], and one more than `bounds` allow a [`StoreError::QueueFull`]: what is
    /// published at the same moment counts too.
    async fn publish(&self, batch: &Batch, now: Timestamp, bounds: Bounds) -> Result<Published>;

    /// Batches that nobody holds, up to about `turns` turns, or as many KiB of them where that is less, and at least one batch;
    /// empty when there is none. Tenants come in turn, and the spaces of a tenant, each with its oldest batch, so that nobody
    /// waits behind another's backlog; the answer is in the order of acceptance. What is taken and not acknowledged is handed out again after a
    /// restart, alone where that happened [`TOGETHER`] times, and after [`TRIES`] tries it is a dead letter ([`process_died`]). A
    /// batch that cannot be read back becomes a dead letter without turns, and those behind it come.
    async fn take(&self, turns: u32) -> Result<Vec<Delivery>>;

    /// Removes what was applied.
    async fn acknowledge(&self, acceptances: &[u64]) -> Result<()>;

    /// Gives deliveries back: they are handed out again, in their old order.
    async fn release(&self, acceptances: &[u64]) -> Result<()>;

    /// As [`IngestQueue::release`], for what was never tried, or met a store that was down: it does not count as an attempt.
    async fn release_untried(&self, acceptances: &[u64]) -> Result<()>;

    /// Gives back what cannot be applied yet: it is handed out again after [`POSTPONED`], and does not count as an attempt.
    async fn postpone(&self, acceptances: &[u64]) -> Result<()>;

    /// Moves `letter.batch` from the queue to the dead letters; the rest of the delivery counts as applied. A second letter
    /// of the same delivery adds its turns to the first. What was forgotten since it was taken is in no letter. Beyond [`LETTERS`]
    /// or [`LETTER_BYTES`] of a tenant its oldest letters go.
    async fn dead_letter(&self, letter: &DeadLetter) -> Result<()>;

    /// Where this batch is, asked without reading what it holds.
    async fn place(&self, scope: &Scope, batch: BatchId) -> Result<Option<Place>>;

    /// Whether this batch is waiting, and its turns.
    async fn waiting(&self, scope: &Scope, batch: BatchId) -> Result<Option<Batch>>;

    /// The dead letter of this batch, if it has one.
    async fn buried(&self, scope: &Scope, batch: BatchId) -> Result<Option<DeadLetter>>;

    /// The oldest and the youngest position of a space's batches that are waiting or being worked on.
    async fn waiting_span(&self, scope: &Scope) -> Result<Option<(u64, u64)>>;

    /// Spaces of a tenant with batches that are waiting or being worked on, the space of the youngest batch first; at most `limit`.
    async fn waiting_spaces(&self, tenant: &TenantId, limit: usize) -> Result<Vec<SpaceId>>;

    /// Names of a tenant's spaces that have dead letters, in no order, read of one letter each. A
    /// space whose letters cannot be read is left out.
    async fn buried_spaces(&self, tenant: &TenantId) -> Result<Vec<SpaceId>>;

    /// The dead letters of a space, or of all spaces of a tenant, oldest first. A page of large
    /// ones ends before its limit. Where one that cannot be read is listed without its space, a
    /// hash of 32 hexadecimal digits stands for the name.
    async fn dead_letters(
        &self,
        tenant: &TenantId,
        space: Option<&SpaceId>,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<DeadLetter>>;

    /// Puts dead letters back into the queue at their old positions, with fresh attempts, all of the space when
    /// `acceptances` is empty; the answer is how many batches. One whose batch waits again by then stays a letter.
    async fn replay(&self, scope: &Scope, acceptances: &[u64]) -> Result<u64>;

    /// What is not as it should be while the queue works, for whoever runs it: settings that differ from what this build would set, a
    /// server that was put back to an older state. Absent where there is no server.
    fn concerns(&self) -> Option<Vec<String>> {
        None
    }

    /// How full the queue is; nothing is a tenant's own when none is named.
    async fn depth(&self, tenant: Option<&TenantId>) -> Result<Depths>;

    /// Depth of what waits of a tenant. Dead letters are not counted: this is asked at every write.
    async fn waiting_depth(&self, tenant: &TenantId) -> Result<Depth>;

    /// Returns when there may be something to take.
    async fn ready(&self);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_are_due_at_a_first_letter_and_after_a_number_or_bytes() {
        let tally = LetterTally::new(3, 160);
        let due = |tenant, sizes: &[u64]| {
            let due = sizes.iter().map(|bytes| tally.count(tenant, *bytes));
            due.collect::<Vec<_>>()
        };
        assert_eq!(due("acme", &[1, 1, 1, 1]), [true, false, false, true]);
        assert_eq!(due("acme", &[9, 1, 9, 10]), [false, true, false, true]);
        assert_eq!(due("globex", &[1, 1]), [true, false]);
    }
}
