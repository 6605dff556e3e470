//! Pace of refusals: answers that refuse are held back for callers who collect them faster than
//! they may, so that a loop which ignores them leaves the processors to others.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use tokio::time::Instant;
use tonic::Code;

/// Refusals that may come at once, as the seconds of pace that they make up.
const BURST: Duration = Duration::from_secs(2);

/// The longest time that a refusal is held back: a caller with a deadline still reads it.
const LONGEST: Duration = Duration::from_millis(250);

/// Callers after which those that are within their pace are let go of.
const CALLERS: usize = 4_096;

/// When the next refusal of each caller is due, by caller (generic cell rate).
#[derive(Debug)]
pub(super) struct RefusalPace {
    /// Pause from one refusal to the next; none where they are not held back.
    step: Option<Duration>,
    due: Mutex<HashMap<String, Instant>>,
}

impl RefusalPace {
    /// A pace of `per_second` refusals a caller; with 0 none is held back.
    pub(super) fn new(per_second: u32) -> Self {
        Self {
            step: (per_second > 0).then(|| Duration::from_secs(1) / per_second),
            due: Mutex::default(),
        }
    }

    /// How long one more refusal of this caller is held back.
    pub(super) fn next(&self, caller: String) -> Option<Duration> {
        let step = self.step?;
        let now = Instant::now();
        let mut callers = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        if callers.len() >= CALLERS {
            callers.retain(|_, due| *due > now);
        }
        let due = callers.entry(caller).or_insert(now);
        *due = (*due).max(now) + step;
        let early = now + BURST;
        *due = (*due).min(early + LONGEST);
        let held = due.checked_duration_since(early)?;
        (!held.is_zero()).then_some(held)
    }
}

/// Answers that refuse a call for a reason that lies with its caller.
pub(super) fn is_refusal(headers: &HeaderMap) -> bool {
    let code = headers.get("grpc-status");
    code.is_some_and(|code| {
        matches!(
            Code::from_bytes(code.as_bytes()),
            Code::InvalidArgument
                | Code::NotFound
                | Code::AlreadyExists
                | Code::PermissionDenied
                | Code::ResourceExhausted
                | Code::FailedPrecondition
                | Code::OutOfRange
                | Code::Unimplemented
                | Code::Unauthenticated
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(pace: &RefusalPace, caller: &str) -> Duration {
        pace.next(caller.to_owned()).unwrap_or_default()
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_beyond_the_pace_are_held_back_and_no_longer_than_the_longest() {
        let pace = RefusalPace::new(100);
        for _ in 0..200 {
            assert_eq!(held(&pace, "acme"), Duration::ZERO);
        }
        assert_eq!(held(&pace, "acme"), Duration::from_millis(10));
        assert_eq!(held(&pace, "acme"), Duration::from_millis(20));
        assert_eq!(held(&pace, "beta"), Duration::ZERO, "another caller");
        for _ in 0..100 {
            held(&pace, "acme");
        }
        assert_eq!(held(&pace, "acme"), LONGEST);
        tokio::time::advance(BURST + LONGEST).await;
        assert_eq!(held(&pace, "acme"), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn callers_within_their_pace_are_forgotten() {
        let pace = RefusalPace::new(1_000);
        for caller in 0..CALLERS {
            held(&pace, &caller.to_string());
        }
        tokio::time::advance(Duration::from_millis(2)).await;
        held(&pace, "another");
        assert_eq!(pace.due.lock().unwrap().len(), 1);
    }

    #[test]
    fn without_a_pace_none_is_held_back() {
        let pace = RefusalPace::new(0);
        assert!((0..1_000).all(|_| pace.next(String::new()).is_none()));
    }
}
