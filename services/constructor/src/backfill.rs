//! Vectors that follow: turns stored while the embedder was down are embedded when it is back.

use std::time::Duration;

use memfleet_domain::Fault;
use memfleet_ports::ledger::Unembedded;
use memfleet_retrieval::document::labelled;
use tokio_util::sync::CancellationToken;

use crate::Constructor;

/// How often the ledger is asked for turns without vectors.
const PERIOD: Duration = Duration::from_secs(5);

/// Turns embedded together.
const TURNS: u32 = 32;

impl Constructor {
    /// Brings missing vectors until `shutdown`.
    pub async fn run_backfill(&self, shutdown: CancellationToken) {
        while !shutdown.is_cancelled() {
            match self.backfill_once().await {
                Ok(0) => {}
                Ok(turns) => {
                    tracing::info!(turns, "missing vectors added");
                    continue;
                }
                Err(fault) => {
                    tracing::warn!(reason = %fault.reason, "vectors are still missing: {fault}");
                }
            }
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = tokio::time::sleep(PERIOD) => {}
            }
        }
    }

    /// Embeds some of the turns that have no vectors; how many.
    pub async fn backfill_once(&self) -> Result<usize, Fault> {
        let space = self.embedder.space();
        let waiting = self.ledger.without_vectors(space, TURNS).await?;
        for turn in &waiting {
            let vectors = self.embedder.embed_passages(texts(turn)).await?;
            self.ledger
                .attach_vectors(&turn.scope, turn.turn.accepted.id, space, vectors)
                .await?;
        }
        Ok(waiting.len())
    }
}

fn texts(waiting: &Unembedded) -> Vec<String> {
    let text = waiting.turn.accepted.content.searchable_text();
    let speaker = waiting.turn.accepted.speaker.as_str();
    let passage =
        |&(start, end): &(u32, u32)| labelled(speaker, &text[start as usize..end as usize]);
    waiting.ranges.iter().map(passage).collect()
}
