//! The loop from the queue to the ledger, and what happens when a step fails.
//!
//! Order of safety: commit, then acknowledge. A crash between the two hands the batch out again, and the ledger knows it
//! by its id. An embedder that is down delays vectors, never turns; a store that is down delays everything and loses
//! nothing; only what cannot be indexed or is refused for good becomes a dead letter, and it holds up no other space.

use std::collections::HashSet;
use std::slice;
use std::time::Duration;

use memfleet_domain::Scope;
use memfleet_domain::ingestion::{Batch, TurnState};
use memfleet_domain::time::Timestamp;
use memfleet_ports::events::Event;
use memfleet_ports::ledger::Committed;
use memfleet_ports::queue::{DeadLetter, Delivery};
use memfleet_ports::store::{Result, StoreError};
use memfleet_trace::follow;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

use crate::Constructor;

/// Pauses after a failure, by attempt; the last one repeats.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(10),
];

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
        self.apply(&deliveries).await.map(|()| true)
    }

    /// Applies what is in hand; what could not be applied is given back to the queue when it returns. A round is part of the
    /// trace of its first batch, and each batch has a span in its own.
    async fn apply(&self, deliveries: &[Delivery]) -> Result<()> {
        let (batches, turns) = (deliveries.len(), turns_in(deliveries));
        let round = tracing::info_span!("ingest", batches, turns);
        let first = deliveries.iter().find_map(|one| one.traceparent.as_deref());
        first.inspect(|traceparent| follow(&round, traceparent));
        // They last as long as the round.
        let _batches: Vec<_> = deliveries.iter().map(construction).collect();
        self.apply_together(deliveries).instrument(round).await
    }

    async fn apply_together(&self, deliveries: &[Delivery]) -> Result<()> {
        match self.store(deliveries).await {
            Ok(()) => Ok(()),
            Err(error) if deliveries.len() > 1 && !is_transient(&error) => {
                tracing::warn!(%error, "a round failed; its batches are tried one by one");
                self.apply_singly(deliveries).await
            }
            Err(error) => self.give_up_or_retry(deliveries, error).await,
        }
    }

    async fn store(&self, deliveries: &[Delivery]) -> Result<()> {
        let batches = self.index(deliveries).await?;
        let committed = self.ledger.commit(batches).await?;
        self.settle(deliveries, &committed).await
    }

    /// One batch that fails must not hold up its neighbours. Only later ones of its own space wait for it, since their
    /// positions follow from the order; they were not tried, and so it does not count as an attempt.
    async fn apply_singly(&self, deliveries: &[Delivery]) -> Result<()> {
        let mut stuck = HashSet::new();
        let mut is_down = false;
        let mut untried = Vec::new();
        let mut outcome = Ok(());
        for delivery in deliveries {
            if is_down || stuck.contains(&delivery.batch.scope) {
                untried.push(delivery.acceptance);
                continue;
            }
            let alone = slice::from_ref(delivery);
            let Err(error) = self.store(alone).await else {
                continue;
            };
            if let Err(error) = self.give_up_or_retry(alone, error).await {
                is_down = is_transient(&error);
                stuck.insert(&delivery.batch.scope);
                outcome = outcome.and(Err(error));
            }
        }
        self.queue.release_untried(&untried).await?;
        outcome
    }

    async fn give_up_or_retry(&self, deliveries: &[Delivery], error: StoreError) -> Result<()> {
        let Err(error) = self.give_up(deliveries, error).await else {
            return Ok(());
        };
        let acceptances = deliveries.iter().map(|delivery| delivery.acceptance);
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
    async fn give_up(&self, deliveries: &[Delivery], error: StoreError) -> Result<()> {
        let [delivery] = deliveries else {
            return Err(error);
        };
        if is_transient(&error) || delivery.attempt < self.options.attempts {
            return Err(error);
        }
        self.bury(
            delivery,
            delivery.batch.clone(),
            format!("STORE_REFUSED: {error}"),
        )
        .await?;
        self.announce(&delivery.batch);
        Ok(())
    }

    async fn settle(&self, deliveries: &[Delivery], committed: &[Committed]) -> Result<()> {
        let mut acknowledged = Vec::with_capacity(deliveries.len());
        for (delivery, outcome) in deliveries.iter().zip(committed) {
            match refused(&delivery.batch, outcome) {
                Some((batch, reason)) => self.bury(delivery, batch, reason).await?,
                None => acknowledged.push(delivery.acceptance),
            }
        }
        self.queue.acknowledge(&acknowledged).await?;
        let now = self.clock.now();
        for delivery in deliveries {
            self.announce(&delivery.batch);
            measure_lag(delivery, now);
        }
        metrics::counter!("memfleet_turns_stored_total").increment(
            committed
                .iter()
                .map(|outcome| outcome.turns.len() as u64)
                .sum(),
        );
        Ok(())
    }

    async fn bury(&self, delivery: &Delivery, batch: Batch, reason: String) -> Result<()> {
        tracing::warn!(scope = %batch.scope, batch = %batch.id, turns = batch.turns.len(), reason, "dead letter");
        metrics::counter!("memfleet_dead_letters_total").increment(1);
        let letter = DeadLetter {
            acceptance: delivery.acceptance,
            batch,
            reason,
            failed_at: self.clock.now(),
            attempts: delivery.attempt,
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

/// What becomes of a batch, in the trace of its caller.
fn construction(delivery: &Delivery) -> Span {
    let Scope { tenant, space } = &delivery.batch.scope;
    let turns = delivery.batch.turns.len();
    let span = tracing::info_span!(parent: None, "construct", %tenant, %space, turns);
    if let Some(traceparent) = &delivery.traceparent {
        follow(&span, traceparent);
    }
    span
}

fn turns_in(deliveries: &[Delivery]) -> usize {
    let turns = deliveries.iter().map(|delivery| delivery.batch.turns.len());
    turns.sum()
}

/// From acceptance to the moment from which on it is found.
fn measure_lag(delivery: &Delivery, now: Timestamp) {
    let lag = (now - delivery.accepted_at).to_std().unwrap_or_default();
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

fn is_transient(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable(_) | StoreError::Full(_))
}

async fn wait(pause: Option<Duration>, constructor: &Constructor) {
    match pause {
        Some(pause) => tokio::time::sleep(pause).await,
        None => constructor.queue.ready().await,
    }
}
