//! Threads that compute. Whole groups of texts run side by side, each on a pool of one thread: that scales better than
//! sharing every operator of one group, and lets a query run beside a batch instead of behind it. A group that is alone
//! has all threads.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use rten::ThreadPool;

use crate::error::Error;

/// A store of pools that are not in use. A pool starts when it is first needed, with the priority of the thread that needs it.
pub(crate) struct Lanes {
    width: usize,
    free: Mutex<Vec<Arc<ThreadPool>>>,
    wide: OnceLock<Arc<ThreadPool>>,
}

/// A pool on loan.
struct Lane<'a> {
    lanes: &'a Lanes,
    pool: Arc<ThreadPool>,
}

impl Lanes {
    /// `width` is the number of lanes that one call uses at most; calls at the same time use lanes of their own.
    pub(crate) fn new(width: NonZeroUsize) -> Self {
        Self {
            width: width.get(),
            free: Mutex::default(),
            wide: OnceLock::new(),
        }
    }

    /// Lanes that one call uses at most.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Runs `work` on as many lanes as there are groups, at most the width; gives the first failure.
    pub(crate) fn run<F>(&self, groups: usize, work: F) -> Result<(), Error>
    where
        F: Fn(&Arc<ThreadPool>) -> Result<(), Error> + Sync,
    {
        let on_a_lane = || work(&self.lane().pool);
        match (groups, self.width) {
            (0, _) => Ok(()),
            (1, width) => work(
                self.wide
                    .get_or_init(|| Arc::new(ThreadPool::with_num_threads(width))),
            ),
            (_, 1) => on_a_lane(),
            (groups, width) => thread::scope(|scope| {
                let others = 1..width.min(groups);
                let others: Vec<_> = others.map(|_| scope.spawn(on_a_lane)).collect();
                let mut result = on_a_lane();
                for other in others {
                    let outcome = other.join();
                    result = result
                        .and(outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
                }
                result
            }),
        }
    }

    fn lane(&self) -> Lane<'_> {
        let free = self
            .free
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let pool = free.unwrap_or_else(|| Arc::new(ThreadPool::with_num_threads(1)));
        Lane { lanes: self, pool }
    }
}

impl Drop for Lane<'_> {
    fn drop(&mut self) {
        let mut free = self
            .lanes
            .free
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        free.push(Arc::clone(&self.pool));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn no_more_lanes_run_than_there_are_groups() {
        let lanes = Lanes::new(NonZeroUsize::new(3).unwrap());
        for (groups, expected) in [(0, 0), (1, 1), (2, 2), (9, 3)] {
            let count = AtomicUsize::new(0);
            let work = |_: &Arc<ThreadPool>| {
                count.fetch_add(1, Ordering::Relaxed);
                Ok(())
            };
            lanes.run(groups, work).unwrap();
            assert_eq!(count.into_inner(), expected);
        }
    }

    #[test]
    fn calls_at_the_same_time_have_lanes_of_their_own_and_pools_are_kept() {
        let lanes = Lanes::new(NonZeroUsize::MIN);
        for _ in 0..2 {
            let both = Barrier::new(2);
            let meet = |_: &Arc<ThreadPool>| {
                both.wait();
                Ok(())
            };
            thread::scope(|scope| {
                scope.spawn(|| lanes.run(2, meet));
                lanes.run(2, meet).unwrap();
            });
            assert_eq!(lanes.free.lock().unwrap().len(), 2);
        }
    }

    #[test]
    fn a_failure_is_given_back() {
        let lanes = Lanes::new(NonZeroUsize::new(2).unwrap());
        let failed = lanes.run(2, |_| Err(Error::Inference("told to".to_owned())));
        assert!(matches!(failed, Err(Error::Inference(_))));
    }
}
