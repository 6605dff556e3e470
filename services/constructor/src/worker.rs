//! The loop from the queue to the ledger, and what happens when a step fails.
//!
//! Order of safety: commit, then acknowledge. A crash between the two hands the batch out again, and the ledger knows it
//! by its id. An embedder that is down delays vectors, never turns; a store that is down delays everything and loses
//! nothing; only what the store refuses for good becomes a dead letter.

use std::time::Duration;

use memfleet_domain::Fault;
use memfleet_domain::embedding::PassageVectors;
use memfleet_domain::ingestion::{Batch, TurnState};
use memfleet_ports::events::Event;
use memfleet_ports::ledger::{Committed, IndexedBatch, Passage};
use memfleet_ports::queue::{DeadLetter, Delivery};
use memfleet_ports::store::{Result, StoreError};
use memfleet_retrieval::document::Document;
use tokio_util::sync::CancellationToken;

use crate::Constructor;
use crate::passages::{Prepared, prepare};

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
        let acceptances = deliveries
            .iter()
            .map(|delivery| delivery.acceptance)
            .collect::<Vec<_>>();
        let applied = self.apply(deliveries).await;
        if applied.is_err() {
            self.queue.release(&acceptances).await?;
        }
        applied.map(|()| true)
    }

    async fn apply(&self, deliveries: Vec<Delivery>) -> Result<()> {
        let batches = self.index(&deliveries).await?;
        match self.ledger.commit(batches.clone()).await {
            Ok(committed) => self.settle(&deliveries, &committed).await,
            Err(error) if deliveries.len() > 1 && !is_transient(&error) => {
                tracing::warn!(%error, "a round was refused; its batches are tried one by one");
                self.apply_singly(deliveries, batches).await
            }
            Err(error) => self.give_up_or_retry(&deliveries, error).await,
        }
    }

    /// One refused batch must not hold up its neighbours.
    async fn apply_singly(
        &self,
        deliveries: Vec<Delivery>,
        batches: Vec<IndexedBatch>,
    ) -> Result<()> {
        for (delivery, batch) in deliveries.into_iter().zip(batches) {
            let delivery = [delivery];
            match self.ledger.commit(vec![batch]).await {
                Ok(committed) => self.settle(&delivery, &committed).await?,
                Err(error) => self.give_up_or_retry(&delivery, error).await?,
            }
        }
        Ok(())
    }

    /// A batch that the store refuses again and again, though it works otherwise, becomes a dead letter.
    async fn give_up_or_retry(&self, deliveries: &[Delivery], error: StoreError) -> Result<()> {
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
        for delivery in deliveries {
            self.announce(&delivery.batch);
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

    /// Passages, terms and vectors of every turn in hand, embedded together.
    async fn index(&self, deliveries: &[Delivery]) -> Result<Vec<IndexedBatch>> {
        let languages = self.languages(deliveries).await?;
        let tags = deliveries
            .iter()
            .map(|delivery| languages[&delivery.batch.scope].clone())
            .collect::<Vec<_>>();
        let prepared = prepare(deliveries.to_vec(), tags.clone()).await?;
        let texts = prepared
            .iter()
            .flatten()
            .flatten()
            .map(|document| document.text.clone())
            .collect::<Vec<_>>();
        let vectors = self.vectors(texts).await;
        Ok(self.assemble(deliveries, tags, prepared, vectors))
    }

    /// The vectors, or none of them while the embedder is down: [`crate::backfill`] brings them later.
    async fn vectors(&self, texts: Vec<String>) -> Option<Vec<PassageVectors>> {
        let result: std::result::Result<_, Fault> = self.embedder.embed_passages(texts).await;
        result
            .inspect_err(|fault| tracing::warn!(reason = %fault.reason, "turns are stored without vectors for now: {fault}"))
            .ok()
    }

    fn assemble(
        &self,
        deliveries: &[Delivery],
        languages: Vec<Option<String>>,
        prepared: Vec<Prepared>,
        vectors: Option<Vec<PassageVectors>>,
    ) -> Vec<IndexedBatch> {
        let mut vectors = vectors.map(Vec::into_iter);
        let mut passage = |document: Document| Passage {
            vectors: vectors.as_mut().and_then(Iterator::next),
            ..document.passage
        };
        let batches =
            deliveries
                .iter()
                .zip(languages)
                .zip(prepared)
                .map(|((delivery, language), turns)| IndexedBatch {
                    batch: delivery.batch.clone(),
                    acceptance: delivery.acceptance,
                    embedding_space: self.embedder.space().clone(),
                    language,
                    passages: turns
                        .into_iter()
                        .map(|turn| turn.into_iter().map(&mut passage).collect())
                        .collect(),
                });
        batches.collect()
    }
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
