//! Calls a minute. Each has a place on a line that moves on evenly (the generic cell rate algorithm): a pause saves up at most a
//! minute's calls. Counted at each gateway by itself.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use memfleet_domain::{Fault, FaultKind};
use quick_cache::sync::Cache;
use tokio::time::Instant;

/// Lines at most; the least recently used ones begin anew.
const CAPACITY: usize = 10_000;
const MINUTE: Duration = Duration::from_mins(1);

/// The lines, by what they are of and its name.
pub struct Rates(Cache<(&'static str, String), Arc<Mutex<Instant>>>);

impl Default for Rates {
    fn default() -> Self {
        Self(Cache::new(CAPACITY))
    }
}

impl Rates {
    /// Counts a call, or says when the next one has a place.
    pub fn count(&self, what: &'static str, name: &str, limit: u32) -> Result<(), Fault> {
        let now = Instant::now();
        let line = (what, name.to_owned());
        let begin = || Ok::<_, Infallible>(Arc::new(Mutex::new(now)));
        let Ok(next) = self.0.get_or_insert_with(&line, begin);
        let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (*next).max(now) + MINUTE / limit.max(1);
        let wait = place.saturating_duration_since(now + MINUTE);
        if wait.is_zero() {
            *next = place;
            return Ok(());
        }
        let message =
            format!("this {what} has its {limit} calls a minute: wait, or have it raised");
        let fault = Fault::new(FaultKind::ResourceExhausted, "RATE_LIMITED", message);
        Err(fault
            .with("limit", what)
            .with("calls_per_minute", limit.to_string())
            .retry_after(wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_minute_has_as_many_calls_as_are_allowed_and_a_refusal_says_when_to_come_back() {
        let rates = Rates::default();
        for _ in 0..6 {
            rates.count("key", "a", 6).unwrap();
        }
        let fault = rates.count("key", "a", 6).unwrap_err();
        assert_eq!(fault.reason, "RATE_LIMITED");
        assert_eq!(fault.retry_after, Some(Duration::from_secs(10)));
        rates.count("key", "b", 6).unwrap();
        rates.count("tenant", "a", 6).unwrap();
        tokio::time::advance(Duration::from_secs(10)).await;
        rates.count("key", "a", 6).unwrap();
        rates.count("key", "a", 6).unwrap_err();
        tokio::time::advance(MINUTE * 10).await;
        let taken = (0..100).filter(|_| rates.count("key", "a", 6).is_ok());
        assert_eq!(taken.count(), 6);
    }

    #[test]
    fn amp_127_callers_at_once_get_no_more_than_one_after_the_other() {
        let rates = Rates::default();
        let all = || (0..200).filter(|_| rates.count("key", "a", 60).is_ok());
        let taken: usize = std::thread::scope(|scope| {
            let callers: Vec<_> = (0..8).map(|_| scope.spawn(|| all().count())).collect();
            callers.into_iter().map(|it| it.join().unwrap()).sum()
        });
        // A place a second comes free meanwhile.
        assert!((60..=70).contains(&taken), "{taken}");
    }

    #[test]
    fn amp_127_a_line_whose_holder_failed_still_counts() {
        let rates = Rates::default();
        rates.count("key", "a", 1).unwrap();
        let line = rates.0.get(&("key", "a".to_owned())).unwrap();
        let failed = std::thread::spawn(move || {
            let _held = line.lock();
            panic!("in the middle of it");
        });
        failed.join().unwrap_err();
        rates.count("key", "a", 1).unwrap_err();
    }
}
