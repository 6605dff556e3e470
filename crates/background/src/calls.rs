//! Calls that are being computed now. Work that nobody waits for gives way to them between its
//! steps: a priority alone leaves it a quarter of a processor, and the caches.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest time that work saves up for waiting.
const MOST_SAVED: Duration = Duration::from_millis(100);

/// Calls, and the work beside them.
static CALLS: Mutex<Calls> = Mutex::new(Calls {
    computing: 0,
    saved: Duration::ZERO,
});

/// Told when none is computed any more.
static NONE_LEFT: Condvar = Condvar::new();

struct Calls {
    /// How many are being computed.
    computing: usize,
    /// Time that background work took and has not waited yet, [`MOST_SAVED`] at most.
    saved: Duration,
}

/// A call that is being computed, from its beginning until this is dropped.
#[derive(Debug)]
pub struct CallInProgress(());

impl CallInProgress {
    /// Counts a call.
    pub fn begin() -> Self {
        calls().computing += 1;
        Self(())
    }
}

impl Drop for CallInProgress {
    fn drop(&mut self) {
        let mut calls = calls();
        calls.computing -= 1;
        if calls.computing == 0 {
            NONE_LEFT.notify_all();
        }
    }
}

/// Waits while calls are computed, after a step of background work that took `worked`. A wait is
/// no longer than the threads of such work have worked together since they last waited, so that it
/// goes on however many calls there are.
pub fn give_way(worked: Duration) {
    let mut calls = calls();
    calls.saved = (calls.saved + worked).min(MOST_SAVED);
    if calls.computing > 0 {
        let (begun, longest) = (Instant::now(), calls.saved);
        let is_computing = |calls: &mut Calls| calls.computing > 0;
        let waited = NONE_LEFT.wait_timeout_while(calls, longest, is_computing);
        let (mut calls, _) = waited.unwrap_or_else(PoisonError::into_inner);
        calls.saved = calls.saved.saturating_sub(begun.elapsed());
    }
}

fn calls() -> MutexGuard<'static, Calls> {
    CALLS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn waited(worked: Duration) -> Duration {
        let begun = Instant::now();
        give_way(worked);
        begun.elapsed()
    }

    #[test]
    fn work_waits_for_calls_and_no_longer_than_it_took() {
        let step = Duration::from_millis(20);
        assert!(waited(step) < step);
        let call = CallInProgress::begin();
        // This step and the one before.
        let both = waited(step);
        assert!(both >= 2 * step, "{both:?}");
        let last = waited(step);
        assert!(last >= step && last < 2 * step, "{last:?}");
        let waiting = thread::spawn(move || waited(Duration::from_mins(1)));
        thread::sleep(step);
        drop(call);
        assert!(waiting.join().unwrap() < MOST_SAVED);
    }
}
