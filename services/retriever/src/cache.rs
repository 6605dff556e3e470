//! The indexes of the spaces that are being read: built from the store's change feed, brought up to date by every read,
//! bounded by bytes. It is a cache: dropping any of it costs time, never an answer.
//!
//! Where the store finds candidates itself, a space that is too large to be held, or whose index would take long to build, is here
//! as an outline; the index of the latter is built behind the first search.

mod entry;
mod held;
mod outlines;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use memfleet_domain::embedding::{EmbeddingSpace, HeldEmbeddings};
use memfleet_domain::{Fault, Scope};
use memfleet_ports::candidates::Candidates;
use memfleet_ports::feed::IndexFeed;

pub use entry::{Outline, Paused, Reading};
pub use held::IndexKey;

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
    /// Indexes that are built behind searches.
    warming: Mutex<BTreeSet<IndexKey>>,
    /// No model's: asked for it, a store gives no vectors.
    no_embedding: EmbeddingSpace,
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
            warming: Mutex::default(),
            no_embedding: EmbeddingSpace::default(),
        }
    }

    /// The first of these embedding spaces, in which all spaces have vectors, whose indexes are
    /// here: a search does not wait for others to be built. Where none are here, the first. Where
    /// it is not the first, the indexes of that one are built behind the search.
    pub fn choose(
        self: &Arc<Self>,
        scopes: &[&Scope],
        shared: Vec<EmbeddingSpace>,
    ) -> Option<EmbeddingSpace> {
        let key = |scope: &Scope, embedding: &EmbeddingSpace| IndexKey {
            scope: scope.clone(),
            embedding: Some(embedding.clone()),
        };
        let built = {
            let held = self.lock();
            let all = |embedding: &EmbeddingSpace| {
                let mut scopes = scopes.iter();
                scopes.all(|scope| held.built(&key(scope, embedding)))
            };
            shared.iter().position(all)
        };
        if let (Some(1..), Some(first)) = (built, shared.first()) {
            for scope in scopes {
                self.warm(key(scope, first));
            }
        }
        shared.into_iter().nth(built.unwrap_or(0))
    }

    /// Lets go of the indexes of a space in embedding spaces that it does not hold: once such
    /// vectors are made again, changes do not tell which turns had none when the index read them.
    pub fn keep(&self, scope: &Scope, held: &HeldEmbeddings) {
        let gone = self.lock().remove_others(scope, held);
        if !gone.is_empty() {
            self.forget(&gone);
        }
    }

    /// Builds an index behind the searches that use another one, unless that is under way.
    fn warm(self: &Arc<Self>, key: IndexKey) {
        if !self.warming().insert(key.clone()) {
            return;
        }
        let cache = self.clone();
        tokio::spawn(async move {
            if let Err(fault) = cache.refreshed(&key).await {
                tracing::warn!(%fault, scope = %key.scope, "the index of another embedding space was not built");
            }
            cache.warming().remove(&key);
        });
    }

    fn warming(&self) -> std::sync::MutexGuard<'_, BTreeSet<IndexKey>> {
        self.warming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The indexes of spaces with vectors of one embedding space, or without any, each at least as
    /// new as the store was when this was called. `scopes` are sorted and distinct: two searches
    /// that lock the same spaces in the same order cannot wait for each other in a circle.
    pub async fn current(
        self: &Arc<Self>,
        scopes: &[&Scope],
        embedding: Option<&EmbeddingSpace>,
    ) -> Result<Vec<Reading>, Fault> {
        debug_assert!(scopes.is_sorted(), "locks are taken in order");
        let mut entries = Vec::with_capacity(scopes.len());
        for scope in scopes {
            let key = IndexKey {
                scope: (*scope).clone(),
                embedding: embedding.cloned(),
            };
            entries.push(self.refreshed(&key).await?);
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
        key: &IndexKey,
    ) -> Result<(Arc<Entry>, Option<Outline>), Fault> {
        let entry = match self.known(key) {
            Some(entry) => entry,
            None => self.begin(key).await?,
        };
        let head = self.feed.head(&key.scope).await?;
        let reached = entry.index.read().await.reached();
        let outcome = match reached {
            reached if reached >= head => "hit",
            0 => "miss",
            _ => "behind",
        };
        metrics::counter!("memfleet_index_cache_reads_total", "outcome" => outcome).increment(1);
        if reached < head {
            let _only_one = entry.catching_up.lock().await;
            self.catch_up(key, &entry, head).await?;
            self.evict(key, &entry);
        }
        entry.set_built();
        match &entry.remote {
            None if self.is_too_large(&entry).await => {
                self.remove_entry(key, &entry);
                Box::pin(self.refreshed(key)).await
            }
            None => Ok((entry, None)),
            Some(remote) => {
                let outline = self.outline(key, &entry, remote).await?;
                Ok((entry, Some(outline)))
            }
        }
    }

    /// Lets go of a space, so that nothing forgotten stays in memory.
    pub fn drop_space(&self, scope: &Scope) {
        let gone = self.lock().remove_space(scope);
        self.forget(&gone);
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

    async fn catch_up(&self, key: &IndexKey, entry: &Entry, head: u64) -> Result<(), Fault> {
        let embedding = Some(self.embedding_of(key));
        loop {
            let reached = entry.index.read().await.reached();
            if reached >= head {
                return Ok(());
            }
            let changes = match &entry.remote {
                Some(store) => {
                    let outline = store.outline_after(&key.scope, reached, OUTLINE_PAGE);
                    outline.await?
                }
                None => {
                    let changes = self.feed.changes_in(&key.scope, embedding, reached, PAGE);
                    changes.await?
                }
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

    /// The embedding space of an index's vectors.
    fn embedding_of<'k>(&'k self, key: &'k IndexKey) -> &'k EmbeddingSpace {
        key.embedding.as_ref().unwrap_or(&self.no_embedding)
    }

    /// The entry of a space that is here, read just now.
    fn known(&self, key: &IndexKey) -> Option<Arc<Entry>> {
        self.lock().read(key)
    }

    /// The entry of a space, and whether it was made here.
    fn insert(&self, key: &IndexKey, remote: Option<Arc<dyn Candidates>>) -> (Arc<Entry>, bool) {
        let mut held = self.lock();
        if let Some(entry) = held.read(key) {
            return (entry, false);
        }
        let generation = self.generations.fetch_add(1, Ordering::Relaxed);
        self.tokens.keep(generation);
        let entry = Arc::new(Entry::new(generation, remote));
        held.insert(key, entry.clone());
        (entry, true)
    }

    /// Lets go of an entry, unless another is in its place.
    fn remove_entry(&self, key: &IndexKey, entry: &Arc<Entry>) {
        let gone = self.lock().remove(key, Some(entry));
        self.forget(gone.as_slice());
    }

    /// Drops the least recently read spaces until the rest fits; never the one that is being read, whose entry is weighed first.
    fn evict(&self, reading: &IndexKey, entry: &Arc<Entry>) {
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
