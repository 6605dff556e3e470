//! The indexes of the spaces that are being read: built from the store's change feed, brought up to date by every read,
//! bounded by bytes. It is a cache: dropping any of it costs time, never an answer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use memfleet_domain::{Fault, Scope};
use memfleet_ports::feed::IndexFeed;
use memfleet_retrieval::SpaceIndex;
use tokio::sync::{Mutex as AsyncMutex, OwnedRwLockReadGuard, RwLock};

use crate::tokens::TokenReader;

/// Changes read from the store at a time.
const PAGE: u32 = 2_000;

/// An index that may be read for the length of one search.
pub struct Reading {
    /// The index.
    pub index: OwnedRwLockReadGuard<SpaceIndex>,
    /// Tells this build of the index from earlier ones of the same space.
    pub generation: u64,
}

/// A reading that others may write to meanwhile.
pub struct Paused {
    index: Arc<RwLock<SpaceIndex>>,
    generation: u64,
    reached: u64,
}

impl Reading {
    /// Lets go of the index, which may change until it is read again.
    pub fn pause(self) -> Paused {
        Paused {
            index: OwnedRwLockReadGuard::rwlock(&self.index).clone(),
            generation: self.generation,
            reached: self.index.reached(),
        }
    }
}

impl Paused {
    /// Reads on; whether the index is as it was.
    pub async fn resume(self) -> (Reading, bool) {
        let index = self.index.read_owned().await;
        let is_same = index.reached() == self.reached;
        let generation = self.generation;
        (Reading { index, generation }, is_same)
    }
}

/// Indexes by space, the least recently read leave first, and their token vectors with them.
pub struct IndexCache {
    feed: Arc<dyn IndexFeed>,
    tokens: Arc<TokenReader>,
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
    pub fn new(feed: Arc<dyn IndexFeed>, tokens: Arc<TokenReader>, budget: usize) -> Self {
        Self {
            feed,
            tokens,
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
        let reached = entry.index.read().await.reached();
        let outcome = match reached {
            reached if reached >= head => "hit",
            0 => "miss",
            _ => "behind",
        };
        metrics::counter!("memfleet_index_cache_reads_total", "outcome" => outcome).increment(1);
        if reached < head {
            let _only_one = entry.catching_up.lock().await;
            self.catch_up(scope, &entry, head).await?;
            self.evict(scope);
        }
        Ok(entry)
    }

    /// Lets go of a space, so that nothing forgotten stays in memory.
    pub fn drop_space(&self, scope: &Scope) {
        let gone = self.lock().remove(scope);
        self.forget(gone.into_iter());
    }

    /// Lets go of every space.
    pub fn drop_all(&self) {
        let gone: Vec<_> = self.lock().drain().map(|(_, entry)| entry).collect();
        self.forget(gone.into_iter());
    }

    fn forget(&self, gone: impl Iterator<Item = Arc<Entry>>) {
        gone.for_each(|entry| self.tokens.forget(entry.generation));
        self.show();
    }

    fn show(&self) {
        let entries = self.lock();
        let bytes = entries
            .values()
            .map(|entry| entry.bytes.load(Ordering::Relaxed));
        metrics::gauge!("memfleet_index_cache_bytes").set(bytes.sum::<u64>() as f64);
        metrics::gauge!("memfleet_index_cache_spaces").set(entries.len() as f64);
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
            .or_insert_with(|| {
                self.tokens.keep(now);
                Arc::new(Entry::new(now))
            })
            .clone();
        entry.last_read.store(now, Ordering::Relaxed);
        entry
    }

    /// Drops the least recently read spaces until the rest fits; never the one that is being read.
    fn evict(&self, reading: &Scope) {
        let mut entries = self.lock();
        let mut gone = Vec::new();
        let bytes = |entry: &Arc<Entry>| entry.bytes.load(Ordering::Relaxed);
        let mut total: u64 = entries.values().map(bytes).sum();
        while total > self.budget as u64 {
            let oldest = entries
                .iter()
                .filter(|(scope, _)| *scope != reading)
                .min_by_key(|(_, entry)| entry.last_read.load(Ordering::Relaxed))
                .map(|(scope, _)| scope.clone());
            let Some(entry) = oldest.and_then(|oldest| entries.remove(&oldest)) else {
                break;
            };
            total -= bytes(&entry).min(total);
            gone.push(entry);
        }
        drop(entries);
        self.forget(gone.into_iter());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Scope, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
