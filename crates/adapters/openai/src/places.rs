//! Places for requests: a few at the same time, some more that wait, and no others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::failure::Failure;
use crate::names;

/// The places.
#[derive(Debug)]
pub struct Places {
    free: Arc<Semaphore>,
    waiting: AtomicUsize,
    most_waiting: usize,
}

impl Places {
    /// As many for requests and for those that wait.
    pub fn new(places: usize, most_waiting: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(places)),
            waiting: AtomicUsize::new(0),
            most_waiting,
        }
    }

    /// A place, until it is dropped.
    pub async fn take(&self, deadline: Instant) -> Result<OwnedSemaphorePermit, Failure> {
        if let Ok(place) = self.free.clone().try_acquire_owned() {
            return Ok(place);
        }
        let _waiting = Waiting::begin(self)?;
        let taken = timeout_at(deadline, self.free.clone().acquire_owned()).await;
        taken
            .map(|place| place.expect("it is never closed"))
            .map_err(|_| Failure::Busy)
    }
}

struct Waiting<'a>(&'a Places);

impl<'a> Waiting<'a> {
    fn begin(places: &'a Places) -> Result<Self, Failure> {
        let waiting = Self(places);
        let before = places.waiting.fetch_add(1, Ordering::Relaxed);
        metrics::gauge!(names::WAITING).increment(1.0);
        (before < places.most_waiting)
            .then_some(waiting)
            .ok_or(Failure::Busy)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
        metrics::gauge!(names::WAITING).decrement(1.0);
    }
}
