//! The indexes of the spaces that are being read: built from the store's change feed, brought up to date by every read,
//! bounded by bytes. It is a cache: dropping any of it costs time, never an answer.
//!
//! Where the store finds candidates itself, a space that is too large to be held, or whose index would take long to build, is here
//! as an outline; the index of the latter is built behind the first search.

mod entry;
mod held;
mod outlines;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use memfleet_domain::{Fault, Scope};
use memfleet_ports::candidates::Candidates;
use memfleet_ports::feed::IndexFeed;

pub use entry::{Outline, Paused, Reading};

use crate::tokens::TokenReader;
use entry::Entry;
use held::Held;

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
    generations: AtomicU64,
    held: Mutex<Held>,
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
            generations: AtomicU64::new(0),
            held: Mutex::default(),
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
            self.evict(scope, &entry);
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
        let gone = self.lock().remove(scope, None);
        self.forget(gone.as_slice());
    }

    /// Lets go of every space.
    pub fn drop_all(&self) {
        let gone = self.lock().remove_all();
        self.forget(&gone);
    }

    /// Lets go of the token vectors of entries that are gone, and of all that left before.
    fn forget(&self, gone: &[Arc<Entry>]) {
        self.tokens.leave(gone.iter().map(|entry| entry.generation));
        self.tokens.clear();
        self.show();
    }

    fn show(&self) {
        let held = self.lock();
        metrics::gauge!("memfleet_index_cache_bytes").set(held.bytes() as f64);
        metrics::gauge!("memfleet_index_cache_spaces").set(held.len() as f64);
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
        self.lock().read(scope)
    }

    /// The entry of a space, and whether it was made here.
    fn insert(&self, scope: &Scope, remote: Option<Arc<dyn Candidates>>) -> (Arc<Entry>, bool) {
        let mut held = self.lock();
        if let Some(entry) = held.read(scope) {
            return (entry, false);
        }
        let generation = self.generations.fetch_add(1, Ordering::Relaxed);
        self.tokens.keep(generation);
        let entry = Arc::new(Entry::new(generation, remote));
        held.insert(scope, entry.clone());
        (entry, true)
    }

    /// Lets go of an entry, unless another is in its place.
    fn remove_entry(&self, scope: &Scope, entry: &Arc<Entry>) {
        let gone = self.lock().remove(scope, Some(entry));
        self.forget(gone.as_slice());
    }

    /// Drops the least recently read spaces until the rest fits; never the one that is being read, whose entry is weighed first.
    fn evict(&self, reading: &Scope, entry: &Arc<Entry>) {
        let mut held = self.lock();
        held.weigh(reading, entry);
        let mut gone = Vec::new();
        while held.bytes() > self.budget as u64
            && let Some(entry) = held.remove_oldest(reading)
        {
            gone.push(entry.generation);
        }
        drop(held);
        self.tokens.leave(gone.into_iter());
        self.show();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
