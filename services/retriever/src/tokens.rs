//! Token vectors in memory, bounded by bytes: what a search has read, the next one is likely to read again.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memfleet_domain::embedding::{EmbeddingSpace, TokenVectors};
use memfleet_domain::{Fault, Scope};
use memfleet_ports::feed::IndexFeed;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use rayon::prelude::*;

/// A passage of one generation of a space's index.
type Key = (u64, u32);

/// What a passage of a chat turn takes: 35 word pieces of 64 bytes, and their ids.
const USUAL_BYTES: usize = 2_500;

/// Reads token vectors through a cache. A search asks for thousands at once, so a look into the cache must be cheap.
pub struct TokenReader {
    feed: Arc<dyn IndexFeed>,
    cache: Cache<Key, Arc<TokenVectors>, Bytes>,
    generations: Mutex<Generations>,
}

#[derive(Default)]
struct Generations {
    /// Those that may be kept: a search that still reads one that is gone must not bring it back.
    kept: HashSet<u64>,
    /// Those that left and may still have vectors here, which no search finds any more.
    left: HashSet<u64>,
}

/// Generations that left before a look through the whole cache for theirs.
const LEFT: usize = 256;

/// Weighs token vectors by the memory they take.
#[derive(Clone)]
struct Bytes;

impl Weighter<Key, Arc<TokenVectors>> for Bytes {
    fn weight(&self, _: &Key, vectors: &Arc<TokenVectors>) -> u64 {
        (vectors.values.len() + 4 * vectors.pieces.len() + 128) as u64
    }
}

impl TokenReader {
    /// A reader that keeps at most about `budget` bytes.
    pub fn new(feed: Arc<dyn IndexFeed>, budget: usize) -> Self {
        let cache = Cache::with_weighter(budget / USUAL_BYTES, budget as u64, Bytes);
        Self {
            feed,
            cache,
            generations: Mutex::default(),
        }
    }

    /// Keeps what is read of a generation, until it leaves.
    pub fn keep(&self, generation: u64) {
        self.generations().kept.insert(generation);
    }

    /// The token vectors of passages that are in memory, in their order. `generation` is that of the index that named the
    /// passages.
    pub fn cached(&self, generation: u64, passages: &[u32]) -> Vec<Option<Arc<TokenVectors>>> {
        let passages = passages.par_iter();
        passages
            .map(|&passage| self.cache.get(&(generation, passage)))
            .collect()
    }

    /// Reads what [`Self::cached`] did not have; `None` is left where there are no token vectors.
    pub async fn complete(
        &self,
        scope: &Scope,
        embedding: &EmbeddingSpace,
        generation: u64,
        passages: &[u32],
        found: &mut [Option<Arc<TokenVectors>>],
    ) -> Result<(), Fault> {
        let missing = (0..passages.len())
            .filter(|&place| found[place].is_none())
            .collect::<Vec<_>>();
        if missing.is_empty() {
            return Ok(());
        }
        let numbers = missing
            .iter()
            .map(|&place| passages[place])
            .collect::<Vec<_>>();
        let read = self
            .feed
            .token_vectors(scope, Some(embedding), &numbers)
            .await?;
        for ((place, number), vectors) in missing.into_iter().zip(numbers).zip(read) {
            if let Some(vectors) = &vectors {
                self.cache.insert((generation, number), vectors.clone());
            }
            found[place] = vectors;
        }
        // Its generation left meanwhile: so do these.
        if !self.generations().kept.contains(&generation) {
            for &number in passages {
                self.cache.remove(&(generation, number));
            }
        }
        Ok(())
    }

    /// Keeps nothing more of these generations. What there is of them goes with the next [`Self::clear`], or once many have left: a look
    /// through the cache costs the same for one and for many.
    pub fn leave(&self, gone: impl Iterator<Item = u64>) {
        let mut generations = self.generations();
        for generation in gone {
            generations.kept.remove(&generation);
            generations.left.insert(generation);
        }
        let is_many = generations.left.len() >= LEFT;
        drop(generations);
        if is_many {
            self.clear();
        }
    }

    /// Lets go of everything of the generations that left.
    pub fn clear(&self) {
        let left = std::mem::take(&mut self.generations().left);
        if !left.is_empty() {
            self.cache.retain(|key, _| !left.contains(&key.0));
        }
    }

    fn generations(&self) -> MutexGuard<'_, Generations> {
        self.generations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
