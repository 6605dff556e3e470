//! The indexes of the spaces that are being read: built from the store's change feed, brought up to date by every read,
//! bounded by bytes. It is a cache: dropping any of it costs time, never an answer.
//!
//! Where the store finds candidates itself, a space that is too large to be held, or whose index would take long to build, is here
//! as an outline; the index of the latter is built behind the first search.

mod entry;
mod outlines;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use memfleet_domain::{Fault, Scope};
use memfleet_ports::candidates::Candidates;
use memfleet_ports::feed::IndexFeed;

pub use entry::{Outline, Paused, Reading};

use crate::tokens::TokenReader;
use entry::Entry;

/// Changes read from the store at a time, …
const PAGE: u32 = 2_000;
/// … and of an outline.
const OUTLINE_PAGE: u32 = 20_000;

/// A store that finds candidates, and which spaces it is asked for.
#[derive(Clone)]
pub struct Remote {
    /// The store.
    pub store: Arc<dyn Candidates>,
    /// Passages of the largest space whose index is held.
    pub held: u32,
    /// Passages of the largest space whose index is built before its first search.
    pub cold: u32,
}

/// Indexes by space, the least recently read leave first, and their token vectors with them.
pub struct IndexCache {
    feed: Arc<dyn IndexFeed>,
    remote: Option<Remote>,
    tokens: Arc<TokenReader>,
    budget: usize,
    clock: AtomicU64,
    entries: Mutex<HashMap<Scope, Arc<Entry>>>,
}

impl IndexCache {
    /// An empty cache that keeps at most about `budget` bytes.
    pub fn new(
        feed: Arc<dyn IndexFeed>,
        remote: Option<Remote>,
        tokens: Arc<TokenReader>,
        budget: usize,
    ) -> Self {
        Self {
            feed,
            remote,
            tokens,
            budget,
            clock: AtomicU64::new(0),
            entries: Mutex::default(),
        }
    }

    /// The indexes of spaces, each at least as new as the store was when this was called. `scopes` are sorted and distinct:
    /// two searches that lock the same spaces in the same order cannot wait for each other in a circle.
    pub async fn current(self: &Arc<Self>, scopes: &[&Scope]) -> Result<Vec<Reading>, Fault> {
        debug_assert!(scopes.is_sorted(), "locks are taken in order");
        let mut entries = Vec::with_capacity(scopes.len());
        for scope in scopes {
            entries.push(self.refreshed(scope).await?);
        }
        let mut readings = Vec::with_capacity(scopes.len());
        for (entry, outline) in entries {
            readings.push(Reading {
                index: entry.index.clone().read_owned().await,
                generation: entry.generation,
                outline,
            });
        }
        Ok(readings)
    }

    /// The entry of a space, brought up to the store's present state.
    async fn refreshed(
        self: &Arc<Self>,
        scope: &Scope,
    ) -> Result<(Arc<Entry>, Option<Outline>), Fault> {
        let entry = match self.known(scope) {
            Some(entry) => entry,
            None => self.begin(scope).await?,
        };
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
        match &entry.remote {
            None if self.is_too_large(&entry).await => {
                self.remove_entry(scope, &entry);
                Box::pin(self.refreshed(scope)).await
            }
            None => Ok((entry, None)),
            Some(remote) => {
                let outline = self.outline(scope, &entry, remote).await?;
                Ok((entry, Some(outline)))
            }
        }
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
        let bytes = entries.values().map(|entry| entry.bytes());
        metrics::gauge!("memfleet_index_cache_bytes").set(bytes.sum::<u64>() as f64);
        metrics::gauge!("memfleet_index_cache_spaces").set(entries.len() as f64);
    }

    async fn catch_up(&self, scope: &Scope, entry: &Entry, head: u64) -> Result<(), Fault> {
        loop {
            let reached = entry.index.read().await.reached();
            if reached >= head {
                return Ok(());
            }
            let changes = match &entry.remote {
                Some(store) => store.outline_after(scope, reached, OUTLINE_PAGE).await?,
                None => self.feed.changes_after(scope, reached, PAGE).await?,
            };
            let more = changes.more;
            let mut index = entry.index.clone().write_owned().await;
            let bytes = tokio::task::spawn_blocking(move || {
                index.advance(changes);
                index.bytes()
            })
            .await
            .map_err(|error| Fault::internal(format!("building an index stopped: {error}")))?;
            entry.measure(bytes);
            if !more {
                return Ok(());
            }
        }
    }

    /// The entry of a space that is here, read just now.
    fn known(&self, scope: &Scope) -> Option<Arc<Entry>> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let entry = self.lock().get(scope).cloned()?;
        entry.last_read.store(now, Ordering::Relaxed);
        Some(entry)
    }

    /// The entry of a space, and whether it was made here.
    fn insert(&self, scope: &Scope, remote: Option<Arc<dyn Candidates>>) -> (Arc<Entry>, bool) {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let mut entries = self.lock();
        if let Some(entry) = entries.get(scope) {
            return (entry.clone(), false);
        }
        self.tokens.keep(now);
        let entry = Arc::new(Entry::new(now, remote));
        entries.insert(scope.clone(), entry.clone());
        (entry, true)
    }

    /// Lets go of an entry, unless another is in its place.
    fn remove_entry(&self, scope: &Scope, entry: &Arc<Entry>) {
        let mut entries = self.lock();
        let is_same = |found: &Arc<Entry>| Arc::ptr_eq(found, entry);
        let gone = entries
            .get(scope)
            .is_some_and(is_same)
            .then(|| entries.remove(scope));
        drop(entries);
        self.forget(gone.flatten().into_iter());
    }

    /// Drops the least recently read spaces until the rest fits; never the one that is being read.
    fn evict(&self, reading: &Scope) {
        let mut entries = self.lock();
        let mut gone = Vec::new();
        let mut total: u64 = entries.values().map(|entry| entry.bytes()).sum();
        while total > self.budget as u64 {
            let oldest = entries
                .iter()
                .filter(|(scope, _)| *scope != reading)
                .min_by_key(|(_, entry)| entry.last_read.load(Ordering::Relaxed))
                .map(|(scope, _)| scope.clone());
            let Some(entry) = oldest.and_then(|oldest| entries.remove(&oldest)) else {
                break;
            };
            total -= entry.bytes().min(total);
            gone.push(entry);
        }
        drop(entries);
        self.forget(gone.into_iter());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Scope, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
