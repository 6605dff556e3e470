//! The indexes of the spaces that are being read: built from the store's change feed, brought up to date by every read,
//! bounded by bytes. It is a cache: dropping any of it costs time, never an answer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use memfleet_domain::{Fault, Scope};
use memfleet_ports::feed::IndexFeed;
use memfleet_retrieval::SpaceIndex;
use tokio::sync::{Mutex as AsyncMutex, OwnedRwLockReadGuard, RwLock};

/// Changes read from the store at a time.
const PAGE: u32 = 2_000;

/// An index that may be read for the length of one search.
pub struct Reading {
    /// The index.
    pub index: OwnedRwLockReadGuard<SpaceIndex>,
    /// Tells this build of the index from earlier ones of the same space.
    pub generation: u64,
}

/// Indexes by space, the least recently read leave first.
pub struct IndexCache {
    feed: Arc<dyn IndexFeed>,
    budget: usize,
    clock: AtomicU64,
    entries: Mutex<HashMap<Scope, Arc<Entry>>>,
}

struct Entry {
    generation: u64,
    index: Arc<RwLock<SpaceIndex>>,
    /// Held while the index catches up, so that two reads do not fetch the same changes.
    catching_up: AsyncMutex<()>,
    last_read: AtomicU64,
    bytes: AtomicU64,
}

impl Entry {
    fn new(generation: u64) -> Self {
        Self {
            generation,
            index: Arc::default(),
            catching_up: AsyncMutex::default(),
            last_read: AtomicU64::new(generation),
            bytes: AtomicU64::new(0),
        }
    }
}

impl IndexCache {
    /// An empty cache that keeps at most about `budget` bytes.
    pub fn new(feed: Arc<dyn IndexFeed>, budget: usize) -> Self {
        Self {
            feed,
            budget,
            clock: AtomicU64::new(0),
            entries: Mutex::default(),
        }
    }

    /// The indexes of spaces, each at least as new as the store was when this was called. `scopes` are sorted and distinct:
    /// two searches that lock the same spaces in the same order cannot wait for each other in a circle.
    pub async fn current(&self, scopes: &[&Scope]) -> Result<Vec<Reading>, Fault> {
        debug_assert!(scopes.is_sorted(), "locks are taken in order");
        let mut entries = Vec::with_capacity(scopes.len());
        for scope in scopes {
            entries.push(self.refreshed(scope).await?);
        }
        let mut readings = Vec::with_capacity(scopes.len());
        for entry in entries {
            readings.push(Reading {
                index: entry.index.clone().read_owned().await,
                generation: entry.generation,
            });
        }
        Ok(readings)
    }

    /// The entry of a space, brought up to the store's present state.
    async fn refreshed(&self, scope: &Scope) -> Result<Arc<Entry>, Fault> {
        let entry = self.entry(scope);
        let head = self.feed.head(scope).await?;
        if entry.index.read().await.reached() < head {
            let _only_one = entry.catching_up.lock().await;
            self.catch_up(scope, &entry, head).await?;
            self.evict(scope);
        }
        Ok(entry)
    }

    /// Lets go of a space, so that nothing forgotten stays in memory; the generation that is gone, if there was one.
    pub fn drop_space(&self, scope: &Scope) -> Option<u64> {
        self.lock().remove(scope).map(|entry| entry.generation)
    }

    /// Lets go of every space; the generations that are gone.
    pub fn drop_all(&self) -> Vec<u64> {
        self.lock()
            .drain()
            .map(|(_, entry)| entry.generation)
            .collect()
    }

    async fn catch_up(&self, scope: &Scope, entry: &Entry, head: u64) -> Result<(), Fault> {
        loop {
            let reached = entry.index.read().await.reached();
            if reached >= head {
                return Ok(());
            }
            let changes = self.feed.changes_after(scope, reached, PAGE).await?;
            let more = changes.more;
            let mut index = entry.index.clone().write_owned().await;
            let bytes = tokio::task::spawn_blocking(move || {
                index.advance(changes);
                index.bytes()
            })
            .await
            .map_err(|error| Fault::internal(format!("building an index stopped: {error}")))?;
            entry.bytes.store(bytes as u64, Ordering::Relaxed);
            if !more {
                return Ok(());
            }
        }
    }

    fn entry(&self, scope: &Scope) -> Arc<Entry> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let entry = self
            .lock()
            .entry(scope.clone())
            .or_insert_with(|| Arc::new(Entry::new(now)))
            .clone();
        entry.last_read.store(now, Ordering::Relaxed);
        entry
    }

    /// Drops the least recently read spaces until the rest fits; never the one that is being read.
    fn evict(&self, reading: &Scope) {
        let mut entries = self.lock();
        loop {
            let total: u64 = entries
                .values()
                .map(|entry| entry.bytes.load(Ordering::Relaxed))
                .sum();
            metrics::gauge!("memfleet_index_cache_bytes").set(total as f64);
            if total <= self.budget as u64 {
                return;
            }
            let oldest = entries
                .iter()
                .filter(|(scope, _)| *scope != reading)
                .min_by_key(|(_, entry)| entry.last_read.load(Ordering::Relaxed))
                .map(|(scope, _)| scope.clone());
            let Some(oldest) = oldest else { return };
            entries.remove(&oldest);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Scope, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
