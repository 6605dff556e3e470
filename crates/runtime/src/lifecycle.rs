//! Start, run and stop of a process: named tasks with a policy, a stop order that reaches each of them, a bounded drain,
//! and an exit code that says how it went.

mod signal;
mod supervision;

use std::any::Any;
use std::collections::HashMap;
use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::task::{self, JoinError, JoinSet};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

pub use signal::{Signals, StopReason, SystemSignals};

use crate::config::{HumanDuration, Problem, Validate};
use crate::telemetry::{Readiness, names};
use crate::{BoxError, describe};

/// The part of the drain, as a divisor, that is kept for the tasks that others lean on.
const SHARE_OF_SUPPORTS: u32 = 4;

/// How a process stops.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Time that running work gets to finish once the process is asked to stop, the last quarter of it for what is held to be written
    /// down; what is left is then cut off. Default 20 s.
    pub drain: HumanDuration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            drain: HumanDuration::seconds(20),
        }
    }
}

impl Validate for Options {
    fn problems(&self) -> Vec<Problem> {
        let endless = self.drain.get() > Duration::from_hours(1);
        endless
            .then(|| Problem::new("drain", "must be at most 1h"))
            .into_iter()
            .collect()
    }
}

/// What the end of a task means for the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The process is pointless without it: its end before a stop order, even a good one, stops the process.
    Essential,
    /// Its failure is logged and counted, and the rest goes on.
    BestEffort,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was asked to stop and finished its work. Exit code 0.
    Stopped,
    /// An essential task ended, or a task failed while draining. Exit code 1.
    Failed,
    /// It was asked to stop, and work was cut off at the drain limit or by a second signal. Exit code 5, like whatever ran out of time.
    CutOff,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        ExitCode::from(match outcome {
            Outcome::Stopped => 0,
            Outcome::Failed => 1,
            Outcome::CutOff => 5,
        })
    }
}

/// The tasks of a process. They stop in two steps: first those that take work in, then those they lean on.
#[derive(Debug)]
pub struct Lifecycle {
    drain: Duration,
    fronts: Group,
    supports: Group,
    readiness: Readiness,
    failed: bool,
}

impl Lifecycle {
    /// A process without tasks.
    pub fn new(options: &Options) -> Self {
        let fronts = Group::default();
        Self {
            drain: options.drain.get(),
            readiness: Readiness::until(fronts.stop.clone()),
            fronts,
            supports: Group::default(),
            failed: false,
        }
    }

    /// Whether the process takes calls, for whoever asks from outside.
    pub fn readiness(&self) -> Readiness {
        self.readiness.clone()
    }

    /// Cancelled when the process is to stop; cancelling it stops the process.
    pub fn stop_token(&self) -> CancellationToken {
        self.fronts.stop.clone()
    }

    /// Starts a task that is told to stop as soon as the process is: servers, consumers, sweeps. It gets the token that
    /// tells it, and then finishes what it has begun.
    pub fn spawn<F, E>(
        &mut self,
        name: &'static str,
        policy: Policy,
        task: impl FnOnce(CancellationToken) -> F,
    ) where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError> + 'static,
    {
        self.fronts.spawn(name, policy, task);
    }

    /// Starts work that must go on: when it panics, or ends before the stop order, it is logged, counted, and started again after
    /// a pause that grows. `works` hears how it is: at the start, at each failure, and when it has gone on for a while again.
    pub fn supervise<F>(
        &mut self,
        name: &'static str,
        works: impl Fn(bool) + Send + 'static,
        work: impl Fn(CancellationToken) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        self.spawn(name, Policy::BestEffort, |stop| async move {
            supervision::supervise(name, stop, works, work).await;
            Ok::<_, BoxError>(())
        });
    }

    /// Starts a task that others lean on (a batcher, a writer, the metrics endpoint): it is told to stop once every task
    /// of [`Lifecycle::spawn`] has ended.
    pub fn spawn_support<F, E>(
        &mut self,
        name: &'static str,
        policy: Policy,
        task: impl FnOnce(CancellationToken) -> F,
    ) where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError> + 'static,
    {
        self.supports.spawn(name, policy, task);
    }

    /// Runs until a signal, an essential task's end or a cancelled [`Lifecycle::stop_token`], then drains.
    pub async fn run(mut self, mut signals: impl Signals) -> Outcome {
        let asked = self.until_stop(&mut signals).await;
        self.fronts.stop.cancel();
        tracing::info!(reason = %asked, limit = ?self.drain, "stopping");
        let drained = tokio::select! {
            drained = self.drain_all() => drained,
            again = signals.next() => {
                tracing::warn!(reason = %again, "asked again to stop: work in progress is cut off");
                false
            }
        };
        if !drained {
            tracing::warn!(fronts = ?self.fronts.running(), supports = ?self.supports.running(), "work was cut off");
        }
        match (self.failed, drained) {
            (true, _) => Outcome::Failed,
            (false, false) => Outcome::CutOff,
            (false, true) => Outcome::Stopped,
        }
    }

    async fn until_stop(&mut self, signals: &mut impl Signals) -> StopReason {
        let stop = self.fronts.stop.clone();
        loop {
            let ended = tokio::select! {
                reason = signals.next() => return reason,
                () = stop.cancelled() => return StopReason::Requested,
                Some(ended) = self.fronts.next() => ended,
                Some(ended) = self.supports.next() => ended,
            };
            let essential = ended.policy == Policy::Essential && !stop.is_cancelled();
            if essential && ended.error.is_none() {
                tracing::error!(task = ended.name, "an essential task ended by itself");
            }
            ended.report();
            if essential {
                self.failed = true;
                return StopReason::TaskEnded(ended.name);
            }
        }
    }

    /// Whether all ended in time. A front that does not leaves the supports their share: what they hold is worth writing down.
    async fn drain_all(&mut self) -> bool {
        let end = Instant::now() + self.drain;
        let share = match self.supports.running().len() {
            0 => Duration::ZERO,
            _ => self.drain / SHARE_OF_SUPPORTS,
        };
        let groups = [(&mut self.fronts, end - share), (&mut self.supports, end)];
        let mut all = true;
        for (group, deadline) in groups {
            group.stop.cancel();
            loop {
                match timeout_at(deadline, group.next()).await {
                    Ok(Some(ended)) => {
                        self.failed |= ended.policy == Policy::Essential && ended.error.is_some();
                        ended.report();
                    }
                    Ok(None) => break,
                    Err(_) => {
                        all = false;
                        break;
                    }
                }
            }
        }
        all
    }
}

/// Tasks that are told to stop together. Dropping it cuts them off.
#[derive(Debug, Default)]
struct Group {
    stop: CancellationToken,
    tasks: JoinSet<Result<(), BoxError>>,
    names: HashMap<task::Id, (&'static str, Policy)>,
}

/// A task that is over.
struct Ended {
    name: &'static str,
    policy: Policy,
    error: Option<String>,
}

impl Group {
    fn spawn<F, E>(
        &mut self,
        name: &'static str,
        policy: Policy,
        task: impl FnOnce(CancellationToken) -> F,
    ) where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError> + 'static,
    {
        let running = task(self.stop.clone());
        let handle = self
            .tasks
            .spawn(async move { running.await.map_err(Into::into) });
        self.names.insert(handle.id(), (name, policy));
    }

    async fn next(&mut self) -> Option<Ended> {
        let (id, error) = match self.tasks.join_next_with_id().await? {
            Ok((id, result)) => (id, result.err().map(|error| describe(&*error))),
            Err(error) => (error.id(), Some(panic_message(error))),
        };
        let (name, policy) = self
            .names
            .remove(&id)
            .expect("every task is named when it is spawned");
        Some(Ended {
            name,
            policy,
            error,
        })
    }

    fn running(&self) -> Vec<&'static str> {
        self.names.values().map(|(name, _)| *name).collect()
    }
}

impl Ended {
    fn report(&self) {
        let Some(error) = &self.error else {
            return tracing::debug!(task = self.name, "a task ended");
        };
        metrics::counter!(names::TASK_FAILURES, "task" => self.name).increment(1);
        tracing::error!(task = self.name, error, "a task failed");
    }
}

fn panic_message(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(payload) => panic_text(&*payload),
        Err(cancelled) => cancelled.to_string(),
    }
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or(payload.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("without a message"))
}

#[cfg(test)]
mod tests;
