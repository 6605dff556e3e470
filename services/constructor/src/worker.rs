//! The loop from the queue to the ledger, and what happens when a step fails.
//!
//! Order of safety: commit, then acknowledge. A crash between the two hands the batch out again, and the ledger knows it
//! by its id. An embedder that is down delays vectors, never turns; a store that is down delays everything and loses
//! nothing; only what cannot be indexed or is refused for good becomes a dead letter, and it holds up no other space.

use std::collections::HashSet;
use std::slice;
use std::time::Duration;

use memfleet_domain::ingestion::{Batch, TurnState};
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::AcceptedTurn;
use memfleet_ports::events::Event;
use memfleet_ports::ledger::Committed;
use memfleet_ports::queue::DeadLetter;
use memfleet_ports::store::{Result, StoreError};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::Constructor;
use crate::task::{self, Task};

/// Pauses after a failure, by attempt; the last one repeats.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(10),
];

/// Bytes of a batch from which on it is applied alone.
const LARGE_BYTES: usize = 1 << 20;

impl Constructor {
    /// Works until `shutdown`; what is in hand is finished first.
    pub async fn run(&self, shutdown: CancellationToken) {
        let mut failures = 0;
        while !shutdown.is_cancelled() {
            let pause = match self.round().await {
                Ok(true) => {
                    failures = 0;
                    continue;
                }
                Ok(false) => None,
                Err(error) => {
                    tracing::warn!(%error, failures, "ingestion is waiting for the store");
                    failures += 1;
                    Some(PAUSES[(failures - 1).min(PAUSES.len() - 1)])
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = wait(pause, self) => {}
            }
        }
    }

    /// Applies what is waiting, once; false when there was nothing.
    pub async fn round(&self) -> Result<bool> {
        let deliveries = self.queue.take(self.options.turns_per_round).await?;
        if deliveries.is_empty() {
            return Ok(false);
        }
        let tasks: Vec<_> = deliveries.into_iter().map(Task::new).collect();
        let tasks = self.in_time(tasks).await?;
        if tasks.is_empty() {
            return Ok(true);
        }
        let round = task::round(&tasks);
        self.apply_in_turn(&tasks)
            .instrument(round)
            .await
            .map(|()| true)
    }

    /// Without the edits that are to wait for their originals.
    async fn in_time(&self, tasks: Vec<Task>) -> Result<Vec<Task>> {
        let early = match self.early(&tasks).await {
            Ok(early) => early,
            Err(error) => {
                let all: Vec<_> = tasks.iter().map(|task| task.acceptance).collect();
                self.queue.release_untried(&all).await?;
                return Err(error);
            }
        };
        let (early, tasks): (Vec<_>, Vec<_>) = tasks
            .into_iter()
            .partition(|task| early.contains(&task.acceptance));
        let early: Vec<_> = early.iter().map(|task| task.acceptance).collect();
        if let Err(error) = self.queue.postpone(&early).await {
            let all: Vec<_> = tasks.iter().map(|task| task.acceptance).collect();
            self.queue.release_untried(&all).await?;
            return Err(error);
        }
        Ok(tasks)
    }

    /// Applies the batches before a large one, which takes long and is the last of its round, and
    /// then that: who waits for the others does not wait for it.
    async fn apply_in_turn(&self, tasks: &[Task]) -> Result<()> {
        let bytes = |task: &Task| {
            task.batch
                .turns
                .iter()
                .map(AcceptedTurn::bytes)
                .sum::<usize>()
        };
        let Some((last, others)) = tasks.split_last() else {
            return Ok(());
        };
        if others.is_empty() || bytes(last) < LARGE_BYTES {
            return self.apply(tasks).await;
        }
        if let Err(error) = self.apply(others).await {
            self.queue.release_untried(&[last.acceptance]).await?;
            return Err(error);
        }
        self.apply(slice::from_ref(last)).await
    }

    /// Applies what is in hand; what could not be applied is given back to the queue when it returns.
    async fn apply(&self, tasks: &[Task]) -> Result<()> {
        match self.store(tasks).await {
            Ok(()) => Ok(()),
            Err(error) if tasks.len() > 1 && !is_transient(&error) => {
                tracing::warn!(%error, "a round failed; its batches are tried one by one");
                self.apply_singly(tasks).await
            }
            Err(error) => self.give_up_or_retry(tasks, error).await,
        }
    }

    async fn store(&self, tasks: &[Task]) -> Result<()> {
        let batches = self.index(tasks).await?;
        let committed = self.ledger.commit(batches).await?;
        self.settle(tasks, &committed).await
    }

    /// One batch that fails must not hold up its neighbours. Only later ones of its own space wait for it, since their
    /// positions follow from the order; they were not tried, and so it does not count as an attempt.
    async fn apply_singly(&self, tasks: &[Task]) -> Result<()> {
        let mut stuck = HashSet::new();
        let mut is_down = false;
        let mut untried = Vec::new();
        let mut outcome = Ok(());
        for task in tasks {
            if is_down || stuck.contains(&task.batch.scope) {
                untried.push(task.acceptance);
                continue;
            }
            let alone = slice::from_ref(task);
            let Err(error) = self.store(alone).await else {
                continue;
            };
            if let Err(error) = self.give_up_or_retry(alone, error).await {
                is_down = is_transient(&error);
                stuck.insert(&task.batch.scope);
                outcome = outcome.and(Err(error));
            }
        }
        self.queue.release_untried(&untried).await?;
        outcome
    }

    async fn give_up_or_retry(&self, tasks: &[Task], error: StoreError) -> Result<()> {
        let Err(error) = self.give_up(tasks, error).await else {
            return Ok(());
        };
        let acceptances = tasks.iter().map(|task| task.acceptance);
        let acceptances = acceptances.collect::<Vec<_>>();
        if is_transient(&error) {
            // A store that is down says nothing about the batch: its attempts are for what comes after.
            self.queue.release_untried(&acceptances).await?;
        } else {
            self.queue.release(&acceptances).await?;
        }
        Err(error)
    }

    /// A batch that fails again and again, though the store works otherwise, becomes a dead letter.
    async fn give_up(&self, tasks: &[Task], error: StoreError) -> Result<()> {
        let [task] = tasks else {
            return Err(error);
        };
        if is_transient(&error) || task.attempt < self.options.attempts {
            return Err(error);
        }
        self.bury(task, task.batch.clone(), format!("STORE_REFUSED: {error}"))
            .await?;
        self.announce(&task.batch);
        Ok(())
    }

    async fn settle(&self, tasks: &[Task], committed: &[Committed]) -> Result<()> {
        let mut acknowledged = Vec::with_capacity(tasks.len());
        for (task, outcome) in tasks.iter().zip(committed) {
            match refused(&task.batch, outcome) {
                Some((batch, reason)) => self.bury(task, batch, reason).await?,
                None => acknowledged.push(task.acceptance),
            }
        }
        self.queue.acknowledge(&acknowledged).await?;
        let now = self.clock.now();
        for task in tasks {
            self.announce(&task.batch);
            measure_lag(task, now);
            let batch = task.batch.id;
            task.span.in_scope(|| tracing::debug!(%batch, "applied"));
        }
        metrics::counter!("memfleet_turns_stored_total").increment(
            committed
                .iter()
                .map(|outcome| outcome.turns.len() as u64)
                .sum(),
        );
        Ok(())
    }

    async fn bury(&self, task: &Task, batch: Batch, reason: String) -> Result<()> {
        let turns = batch.turns.len();
        task.span
            .in_scope(|| tracing::warn!(batch = %batch.id, turns, reason, "dead letter"));
        metrics::counter!("memfleet_dead_letters_total").increment(1);
        let letter = DeadLetter {
            acceptance: task.acceptance,
            batch,
            reason,
            failed_at: self.clock.now(),
            attempts: task.attempt,
        };
        self.queue.dead_letter(&letter).await
    }

    fn announce(&self, batch: &Batch) {
        self.events.announce(Event::Settled {
            scope: batch.scope.clone(),
            batch: batch.id,
        });
    }
}

/// From acceptance to the moment from which on it is found.
fn measure_lag(task: &Task, now: Timestamp) {
    let lag = (now - task.accepted_at).to_std().unwrap_or_default();
    metrics::histogram!("memfleet_ingestion_lag_seconds").record(lag.as_secs_f64());
}

/// The turns of a batch that the ledger refused, with the first reason.
fn refused(batch: &Batch, outcome: &Committed) -> Option<(Batch, String)> {
    let dead = |state| state == TurnState::DeadLettered;
    let reason = outcome
        .turns
        .iter()
        .find(|turn| dead(turn.state))?
        .reason
        .clone()
        .unwrap_or_default();
    let turns = batch
        .turns
        .iter()
        .zip(&outcome.turns)
        .filter(|(_, receipt)| dead(receipt.state));
    let turns = turns.map(|(turn, _)| turn.clone()).collect();
    Some((
        Batch {
            turns,
            ..batch.clone()
        },
        reason,
    ))
}

pub(crate) fn is_transient(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable(_) | StoreError::Full(_))
}

async fn wait(pause: Option<Duration>, constructor: &Constructor) {
    match pause {
        Some(pause) => tokio::time::sleep(pause).await,
        None => constructor.queue.ready().await,
    }
}
