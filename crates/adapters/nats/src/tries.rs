//! Counts of tries of suspect batches: batches that may crash the process that works on them.
//!
//! The number of deliveries that the server keeps says little: it counts what was fetched ahead, and what a process gave back when
//! it ended in order. So what was handed out several times is handed to a worker alone, and only that is counted, on the
//! server, before it is tried: the number then outlives the process.

use bytes::Bytes;
use memfleet_domain::time::{Clock, SystemClock};
use memfleet_ports::queue::{DeadLetter, Delivery, process_died};
use memfleet_ports::store::Result;

use crate::shared::Shared;

impl Shared {
    /// Counts a try before it is made. After too many the batch is a dead letter and not to be tried.
    pub async fn may_try(&self, delivery: &Delivery) -> Result<bool> {
        let position = delivery.acceptance;
        let tries = self.tries(position).await?;
        if tries < self.options.tries {
            self.note_tries(position, tries + 1).await?;
            return Ok(true);
        }
        let reason = process_died(tries);
        tracing::error!(position, reason, "dead letter");
        let letter = DeadLetter {
            acceptance: position,
            batch: delivery.batch.clone(),
            reason,
            failed_at: SystemClock.now(),
            attempts: tries,
        };
        self.dead_letter(&letter).await?;
        // It may be replayed, with fresh tries.
        self.note_tries(position, 0).await?;
        Ok(false)
    }

    /// Takes a try back that was not made.
    pub async fn discount_try(&self, position: u64) -> Result<()> {
        let tries = self.tries(position).await?;
        self.note_tries(position, tries.saturating_sub(1)).await
    }

    async fn tries(&self, position: u64) -> Result<u32> {
        let subject = self.names.tried(position);
        let noted = self.link.last(&self.names.tries, &subject).await?;
        let tries = noted.and_then(|noted| std::str::from_utf8(&noted.payload).ok()?.parse().ok());
        Ok(tries.unwrap_or(0))
    }

    async fn note_tries(&self, position: u64, tries: u32) -> Result<()> {
        let payload = Bytes::from(tries.to_string());
        let headers = async_nats::HeaderMap::new();
        let noted = self.link.put(self.names.tried(position), headers, payload);
        Ok(noted.await.map(|_| ())?)
    }
}
