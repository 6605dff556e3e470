//! Threads of lower priority: for computation that no caller waits for (analysis of turns before
//! they are stored, checks of facts, vectors of passages), and for calls of tenants that ask for
//! more than their share of the processors. A call that needs the processor takes it at once; what
//! is left over is theirs, a tenth of a busy processor at least.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod calls;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use rayon::{ThreadPool, ThreadPoolBuilder};
use tokio::sync::oneshot;

pub use calls::{CallInProgress, give_way};

/// Niceness of threads of workers: the scheduler weighs them 335 to the 1,024 of a thread of usual
/// priority, be it of this process or of another: more than 5 would starve ingestion on a machine
/// that is shared.
#[cfg(target_os = "linux")]
const OF_WORKERS: i32 = 5;

/// Niceness of threads of crowding calls, which weigh 110. Several of them and of the workers
/// compete with one call of another tenant.
#[cfg(target_os = "linux")]
const OF_CALLS: i32 = 10;

/// Lowers the priority of the calling thread, and of all that it starts from now on, to that of
/// workers. Where the system has no priority of single threads it changes nothing.
pub fn yield_to_callers() {
    yield_to(BackgroundLane::Workers);
}

#[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
fn yield_to(lane: BackgroundLane) {
    #[cfg(target_os = "linux")]
    let niceness = match lane {
        BackgroundLane::Workers => OF_WORKERS,
        BackgroundLane::Calls => OF_CALLS,
    };
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, niceness) {
        tracing::warn!(%error, "background threads compete with those of calls");
    }
}

/// Who computes. Each has threads of its own, as many as the machine has processors: a call of a
/// crowding tenant does not wait for a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackgroundLane {
    /// Workers: no caller waits.
    Workers,
    /// Calls of tenants that ask for more than their share.
    Calls,
}

/// Runs work of a worker on a background thread, in the order of arrival; absent where the work
/// panicked.
pub async fn compute<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    compute_in(BackgroundLane::Workers, work).await
}

/// Runs work on a background thread of a lane, in the order of arrival; absent where the work
/// panicked. Its parallel parts run there too.
pub async fn compute_in<T: Send + 'static>(
    lane: BackgroundLane,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (job, answer) = job(work);
    spawn(lane, job);
    answer.await
}

/// Work as a job for a thread, and its answer; absent where it panicked. A job whose answer nobody
/// waits for any more does nothing.
pub fn job<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> (
    impl FnOnce() + Send + 'static,
    impl Future<Output = Option<T>> + Send,
) {
    let (answer, answered) = oneshot::channel();
    let job = move || {
        if !answer.is_closed()
            && let Ok(done) = catch_unwind(AssertUnwindSafe(work))
        {
            let _gone = answer.send(done);
        }
    };
    (job, async { answered.await.ok() })
}

/// Gives a job to a background thread of a lane.
pub fn spawn(lane: BackgroundLane, job: impl FnOnce() + Send + 'static) {
    match threads(lane) {
        Some(threads) => threads.spawn(job),
        None => drop(tokio::task::spawn_blocking(job)),
    }
}

/// Threads of a lane; absent where the system gave none.
fn threads(lane: BackgroundLane) -> Option<&'static ThreadPool> {
    static WORKERS: OnceLock<Option<ThreadPool>> = OnceLock::new();
    static CALLS: OnceLock<Option<ThreadPool>> = OnceLock::new();
    let (threads, name) = match lane {
        BackgroundLane::Workers => (&WORKERS, "background"),
        BackgroundLane::Calls => (&CALLS, "crowded"),
    };
    let started = threads.get_or_init(|| {
        ThreadPoolBuilder::new()
            .thread_name(move |number| format!("{name}-{number}"))
            .start_handler(move |_| yield_to(lane))
            .build()
            .inspect_err(|error| tracing::warn!(%error, "there are no {name} threads"))
            .ok()
    });
    started.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_that_panics_has_no_answer_and_other_work_goes_on() {
        assert_eq!(compute(|| panic!("on purpose")).await, None::<()>);
        assert_eq!(compute(|| 7).await, Some(7));
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn background_threads_stand_behind_those_of_calls() {
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        assert_eq!(compute(niceness).await, Some(OF_WORKERS));
        let apart = |lane| compute_in(lane, || std::thread::current().name().map(str::to_owned));
        let (worker, call) =
            tokio::join!(apart(BackgroundLane::Workers), apart(BackgroundLane::Calls));
        assert_ne!(worker, call);
        assert_eq!(
            compute_in(BackgroundLane::Calls, niceness).await,
            Some(OF_CALLS)
        );
        let inherited = compute(move || std::thread::spawn(niceness).join().unwrap());
        assert_eq!(inherited.await, Some(OF_WORKERS));
        assert_eq!(niceness(), 0);
    }
}
