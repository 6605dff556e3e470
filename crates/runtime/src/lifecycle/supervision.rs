//! Work that must go on: when it ends before it is told to, it is started again.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::Duration;

use futures::FutureExt;
use tokio_util::sync::CancellationToken;

use super::panic_text;
use crate::telemetry::names;

/// Pause before the work is started again; twice as long after each failure …
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// … up to this.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// Work that has gone on for so long works again.
const STEADY: Duration = Duration::from_mins(1);

/// Runs `work` until `stop`, again and again if need be. `works` hears how it is.
pub(super) async fn supervise<F>(
    name: &'static str,
    stop: CancellationToken,
    works: impl Fn(bool),
    work: impl Fn(CancellationToken) -> F,
) where
    F: Future<Output = ()>,
{
    works(true);
    let mut pause = FIRST_PAUSE;
    loop {
        let mut running = pin!(AssertUnwindSafe(work(stop.clone())).catch_unwind());
        let ended = tokio::select! {
            ended = &mut running => ended,
            () = tokio::time::sleep(STEADY) => {
                works(true);
                pause = FIRST_PAUSE;
                running.await
            }
        };
        if stop.is_cancelled() {
            return;
        }
        let cause = ended.map_or_else(|payload| panic_text(&*payload), |()| "ended".to_owned());
        metrics::counter!(names::TASK_FAILURES, "task" => name).increment(1);
        tracing::error!(
            task = name,
            cause,
            ?pause,
            "a task failed; it is started again"
        );
        works(false);
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => pause = pause.saturating_mul(2).min(LONGEST_PAUSE),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Arc, Mutex};

    use tokio::time::Instant;

    use super::*;

    /// Supervised work that panics `failures` times, and what was heard of it.
    async fn heard(failures: u32, time: Duration) -> (u32, Vec<bool>) {
        let (starts, heard) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::new(vec![])));
        let stop = CancellationToken::new();
        let work = |stop: CancellationToken| {
            let start = starts.fetch_add(1, Ordering::Relaxed);
            async move {
                assert!(start >= failures, "on purpose");
                stop.cancelled().await;
            }
        };
        let works = |works| heard.lock().unwrap().push(works);
        let supervised = supervise("test", stop.clone(), works, work);
        let stopping = async {
            tokio::time::sleep(time).await;
            stop.cancel();
        };
        tokio::join!(supervised, stopping);
        let heard = heard.lock().unwrap().clone();
        (starts.load(Ordering::Relaxed), heard)
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_panics_is_started_again_and_said_to_work_once_it_goes_on() {
        let (starts, heard) = heard(2, Duration::from_hours(1)).await;
        assert_eq!(starts, 3);
        assert_eq!(heard, [true, false, false, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_and_end_with_the_stop_order() {
        let begun = Instant::now();
        let (starts, heard) = heard(u32::MAX, Duration::from_mins(30)).await;
        // 1 s, 2 s, … 256 s make nine; five minutes each from then on.
        assert!((13..=15).contains(&starts), "{starts}");
        assert!(heard[1..].iter().all(|works| !works));
        assert_eq!(begun.elapsed(), Duration::from_mins(30));
    }
}
