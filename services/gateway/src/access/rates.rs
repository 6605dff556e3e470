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

/// A line that a call has to have a place on.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// Kind of its holder, `key` or `tenant`.
    pub what: &'static str,
    /// Name of its holder.
    pub name: &'a str,
    /// Calls a minute.
    pub limit: u32,
}

impl Rates {
    /// Counts a call on each of these lines, or on none and says when it would have a place on the first that has none. Calls at the same
    /// time must name their lines in the same order.
    pub fn count(&self, lines: &[Line]) -> Result<(), Fault> {
        let now = Instant::now();
        let begin = || Ok::<_, Infallible>(Arc::new(Mutex::new(now)));
        let of = |line: &Line| {
            let Ok(next) = self
                .0
                .get_or_insert_with(&(line.what, line.name.to_owned()), begin);
            next
        };
        let nexts: Vec<_> = lines.iter().map(of).collect();
        let mut held = Vec::with_capacity(lines.len());
        for (line, next) in lines.iter().zip(&nexts) {
            let next = next.lock().unwrap_or_else(PoisonError::into_inner);
            let place = (*next).max(now) + MINUTE / line.limit.max(1);
            let wait = place.saturating_duration_since(now + MINUTE);
            if !wait.is_zero() {
                return Err(exceeded(line, wait));
            }
            held.push((next, place));
        }
        for (mut next, place) in held {
            *next = place;
        }
        Ok(())
    }
}

fn exceeded(line: &Line, wait: Duration) -> Fault {
    let Line { what, limit, .. } = line;
    let message = format!("this {what} has its {limit} calls a minute: wait, or have it raised");
    let fault = Fault::new(FaultKind::ResourceExhausted, "RATE_LIMITED", message);
    fault
        .with("limit", *what)
        .with("calls_per_minute", limit.to_string())
        .retry_after(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(what: &'static str, name: &'static str, limit: u32) -> Line<'static> {
        Line { what, name, limit }
    }

    #[test]
    fn a_call_that_is_refused_on_one_line_costs_no_place_on_the_other() {
        let rates = Rates::default();
        let (slow, fast) = (line("key", "a", 2), line("key", "b", 100));
        let tenant = line("tenant", "acme", 10);
        let taken = (0..100).filter(|_| rates.count(&[slow, tenant]).is_ok());
        assert_eq!(taken.count(), 2);
        let taken = (0..100).filter(|_| rates.count(&[fast, tenant]).is_ok());
        assert_eq!(taken.count(), 8);
        let refused = rates.count(&[fast, tenant]).unwrap_err();
        assert_eq!(refused.metadata["limit"], "tenant");
        let taken = (0..100).filter(|_| rates.count(&[fast]).is_ok());
        assert_eq!(
            taken.count(),
            92,
            "what the tenant refused cost the key nothing"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_minute_has_as_many_calls_as_are_allowed_and_a_refusal_says_when_to_come_back() {
        let rates = Rates::default();
        for _ in 0..6 {
            rates.count(&[line("key", "a", 6)]).unwrap();
        }
        let fault = rates.count(&[line("key", "a", 6)]).unwrap_err();
        assert_eq!(fault.reason, "RATE_LIMITED");
        assert_eq!(fault.retry_after, Some(Duration::from_secs(10)));
        rates.count(&[line("key", "b", 6)]).unwrap();
        rates.count(&[line("tenant", "a", 6)]).unwrap();
        tokio::time::advance(Duration::from_secs(10)).await;
        rates.count(&[line("key", "a", 6)]).unwrap();
        rates.count(&[line("key", "a", 6)]).unwrap_err();
        tokio::time::advance(MINUTE * 10).await;
        let taken = (0..100).filter(|_| rates.count(&[line("key", "a", 6)]).is_ok());
        assert_eq!(taken.count(), 6);
    }

    #[test]
    fn amp_127_callers_at_once_get_no_more_than_one_after_the_other() {
        let rates = Rates::default();
        let all = || (0..200).filter(|_| rates.count(&[line("key", "a", 60)]).is_ok());
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
        rates.count(&[line("key", "a", 1)]).unwrap();
        let known = rates.0.get(&("key", "a".to_owned())).unwrap();
        let failed = std::thread::spawn(move || {
            let _held = known.lock();
            panic!("in the middle of it");
        });
        failed.join().unwrap_err();
        rates.count(&[line("key", "a", 1)]).unwrap_err();
    }
}
