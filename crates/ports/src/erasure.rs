//! Removing turns for good: from the ledger, its indexes and vectors, the queue and its dead letters.

use async_trait::async_trait;
use memfleet_domain::Scope;
use memfleet_domain::ids::{SessionId, TurnId};
use memfleet_domain::time::Timestamp;

use crate::filter::TurnFilter;
use crate::store::Result;

/// What is gone, or what would go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Erased {
    /// The turns.
    pub turns: Vec<TurnId>,
    /// Sessions that have no turn left.
    pub emptied_sessions: Vec<SessionId>,
    /// Passages with their terms and vectors.
    pub passages: u64,
    /// Turns waiting in the queue or among the dead letters.
    pub undelivered: u64,
    /// Batches among these that cannot be read: they go with any forget of their space, since nothing tells what they hold.
    pub unreadable: u64,
    /// Whether the space itself is gone.
    pub space: bool,
}

/// What the refresher asks of storage.
#[async_trait]
pub trait Erasure: Send + Sync {
    /// What [`Erasure::remove`] would remove. Replaced turns are always included, and with a turn go all the versions that
    /// it replaced: otherwise the older words would come up again. A newer version of it stays.
    async fn plan(&self, scope: &Scope, filter: &TurnFilter) -> Result<Erased>;

    /// Removes every turn that matches, and the space itself when the filter means everything: no read finds them any more.
    /// What stays are ids without content: tombstones, so that indexes let go of the turns and a delivery under way does
    /// not bring them back, and the receipts of their batches, unless the space goes: then its batches may be sent again as new.
    /// A caller may tell single turns anew. Their text may be left in unused bytes of the files until the next
    /// [`Erasure::scrub`].
    async fn remove(&self, scope: &Scope, filter: &TurnFilter) -> Result<Erased>;

    /// [`Erasure::remove`] of the turns from before an instant, by event time, else recorded time. Nobody named what cannot be
    /// read, so of that goes only what came before the instant itself.
    async fn expire(&self, scope: &Scope, before: Timestamp) -> Result<Erased>;

    /// When it returns, no file of the store holds text of what was removed before. It may take long, as it may have to
    /// rewrite the store, and is nothing when nothing was removed since the last time. What was begun is finished also when the caller leaves.
    async fn scrub(&self) -> Result<()>;

    /// [`Erasure::remove`] and [`Erasure::scrub`].
    async fn erase(&self, scope: &Scope, filter: &TurnFilter) -> Result<Erased> {
        let erased = self.remove(scope, filter).await?;
        // Also when nothing matched: an erase that was cut short by a crash is tried again by its caller.
        self.scrub().await?;
        Ok(erased)
    }

    /// Spaces whose retention period has turns to remove at `now`, with the instant before which they go; spaces with dead letters
    /// are among them whatever these hold.
    async fn expired(&self, now: Timestamp) -> Result<Vec<(Scope, Timestamp)>>;
}
