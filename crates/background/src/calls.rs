//! Calls that are being computed now. Work that nobody waits for gives way to them between its
//! steps: a priority alone leaves it a quarter of a processor, and the caches.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many there are.
static CALLS: Mutex<usize> = Mutex::new(0);

/// Told when there are none any more.
static NONE_LEFT: Condvar = Condvar::new();

/// A call that is being computed, from its beginning until this is dropped.
#[derive(Debug)]
pub struct CallInProgress(());

impl CallInProgress {
    /// Counts a call.
    pub fn begin() -> Self {
        *calls() += 1;
        Self(())
    }
}

impl Drop for CallInProgress {
    fn drop(&mut self) {
        let mut calls = calls();
        *calls -= 1;
        if *calls == 0 {
            NONE_LEFT.notify_all();
        }
    }
}

/// Waits while calls are computed, after a step that took as long as `worked` and no longer than
/// that: half of the time is left for the work, however many calls there are.
pub fn give_way(worked: Duration) {
    let calls = calls();
    if *calls > 0 {
        let waited = NONE_LEFT.wait_timeout_while(calls, worked, |calls| *calls > 0);
        drop(waited);
    }
}

fn calls() -> MutexGuard<'static, usize> {
    CALLS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Instant;

    use super::*;

    fn waited(worked: Duration) -> Duration {
        let begun = Instant::now();
        give_way(worked);
        begun.elapsed()
    }

    #[test]
    fn work_waits_for_calls_and_no_longer_than_it_took() {
        let long = Duration::from_secs(60);
        assert!(waited(long) < long);
        let call = CallInProgress::begin();
        let short = Duration::from_millis(20);
        assert!(waited(short) >= short);
        let waiting = thread::spawn(move || waited(long));
        thread::sleep(short);
        drop(call);
        assert!(waiting.join().unwrap() < long);
    }
}
