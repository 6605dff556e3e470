//! Count of the calls that are being computed, and waits of background work for them between its
//! steps. A lower priority alone leaves such work a quarter of a processor, and the caches.

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

impl Calls {
    /// Notes a step of background work.
    fn save(&mut self, worked: Duration) {
        self.saved = (self.saved + worked).min(MOST_SAVED);
    }

    /// Longest time that background work waits now; absent where no call is computed.
    fn longest_wait(&self) -> Option<Duration> {
        (self.computing > 0).then_some(self.saved)
    }

    /// Notes a wait.
    fn spend(&mut self, waited: Duration) {
        self.saved = self.saved.saturating_sub(waited);
    }
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
    calls.save(worked);
    if let Some(longest) = calls.longest_wait() {
        let begun = Instant::now();
        let is_computing = |calls: &mut Calls| calls.computing > 0;
        let waited = NONE_LEFT.wait_timeout_while(calls, longest, is_computing);
        let (mut calls, _) = waited.unwrap_or_else(PoisonError::into_inner);
        calls.spend(begun.elapsed());
    }
}

fn calls() -> MutexGuard<'static, Calls> {
    CALLS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn work_waits_for_calls_alone_and_no_longer_than_it_took() {
        let step = Duration::from_millis(20);
        let mut calls = Calls {
            computing: 0,
            saved: Duration::ZERO,
        };
        calls.save(step);
        assert_eq!(calls.longest_wait(), None);
        calls.computing = 1;
        calls.save(step);
        assert_eq!(calls.longest_wait(), Some(2 * step));
        calls.spend(2 * step);
        calls.save(step);
        assert_eq!(calls.longest_wait(), Some(step));
        calls.spend(3 * step);
        assert_eq!(calls.longest_wait(), Some(Duration::ZERO));
        calls.save(Duration::from_mins(1));
        assert_eq!(calls.longest_wait(), Some(MOST_SAVED));
    }

    fn waited(worked: Duration) -> Duration {
        let begun = Instant::now();
        give_way(worked);
        begun.elapsed()
    }

    #[test]
    fn a_wait_lasts_while_a_call_is_computed() {
        let step = Duration::from_millis(20);
        give_way(step);
        let call = CallInProgress::begin();
        // This step and the one before.
        let both = waited(step);
        assert!(both >= 2 * step, "{both:?}");
        let last = waited(step);
        assert!(last >= step, "{last:?}");
        let waiting = thread::spawn(move || waited(Duration::from_mins(1)));
        thread::sleep(step);
        drop(call);
        assert!(waiting.join().unwrap() < MOST_SAVED);
    }
}
