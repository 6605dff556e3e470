//! A space in the cache, and how a search holds it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use memfleet_ports::candidates::Candidates;
use memfleet_retrieval::{Sample, SpaceIndex};
use tokio::sync::{Mutex as AsyncMutex, OwnedRwLockReadGuard, RwLock};

/// A space in memory.
pub(super) struct Entry {
    pub(super) generation: u64,
    pub(super) index: Arc<RwLock<SpaceIndex>>,
    /// Of an outline: the store that is asked for the rest.
    pub(super) remote: Option<Arc<dyn Candidates>>,
    pub(super) sample: AsyncMutex<Option<Arc<Sample>>>,
    /// Held while the index catches up, so that two reads do not fetch the same changes.
    pub(super) catching_up: AsyncMutex<()>,
    is_built: AtomicBool,
    bytes: AtomicU64,
    sample_bytes: AtomicU64,
}

impl Entry {
    pub(super) fn new(generation: u64, remote: Option<Arc<dyn Candidates>>) -> Self {
        Self {
            generation,
            index: Arc::default(),
            remote,
            sample: AsyncMutex::default(),
            catching_up: AsyncMutex::default(),
            is_built: AtomicBool::new(false),
            bytes: AtomicU64::new(0),
            sample_bytes: AtomicU64::new(0),
        }
    }

    /// What it takes, as last measured.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed) + self.sample_bytes.load(Ordering::Relaxed)
    }

    /// True once it had all that the store had.
    pub(super) fn is_built(&self) -> bool {
        self.is_built.load(Ordering::Relaxed)
    }

    pub(super) fn set_built(&self) {
        self.is_built.store(true, Ordering::Relaxed);
    }

    pub(super) fn measure(&self, bytes: usize) {
        self.bytes.store(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn measure_sample(&self, bytes: usize) {
        self.sample_bytes.store(bytes as u64, Ordering::Relaxed);
    }
}

/// What a search asks beside an outline.
#[derive(Clone)]
pub struct Outline {
    /// Whom it asks.
    pub store: Arc<dyn Candidates>,
    /// Some of the space's passages.
    pub sample: Arc<Sample>,
    /// Turns that only their words can find for now.
    pub without_vectors: u64,
}

/// An index that may be read for the length of one search.
pub struct Reading {
    /// The index.
    pub index: OwnedRwLockReadGuard<SpaceIndex>,
    /// Tells this build of the index from earlier ones of the same space.
    pub generation: u64,
    /// Present where the index is an outline.
    pub outline: Option<Outline>,
}

/// A reading that others may write to meanwhile.
pub struct Paused {
    index: Arc<RwLock<SpaceIndex>>,
    generation: u64,
    outline: Option<Outline>,
    reached: u64,
}

impl Reading {
    /// Turns that only their words can find for now.
    pub fn without_vectors(&self) -> u64 {
        match &self.outline {
            Some(outline) => outline.without_vectors,
            None => self.index.without_vectors().count() as u64,
        }
    }

    /// Lets go of the index, which may change until it is read again.
    pub fn pause(self) -> Paused {
        Paused {
            index: OwnedRwLockReadGuard::rwlock(&self.index).clone(),
            generation: self.generation,
            reached: self.index.reached(),
            outline: self.outline,
        }
    }
}

impl Paused {
    /// Reads on; whether the index is as it was.
    pub async fn resume(self) -> (Reading, bool) {
        let index = self.index.read_owned().await;
        let is_same = index.reached() == self.reached;
        let reading = Reading {
            index,
            generation: self.generation,
            outline: self.outline,
        };
        (reading, is_same)
    }
}
