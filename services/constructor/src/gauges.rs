//! How full the queue is, for whoever runs the node: tenants see their own part only.

use std::time::Duration;

use chrono::TimeDelta;
use memfleet_domain::Timestamp;
use memfleet_ports::queue::Depth;
use tokio_util::sync::CancellationToken;

use crate::Constructor;

/// How often the queue is looked at.
const PERIOD: Duration = Duration::from_secs(10);

/// Age of the oldest batch from which on the log warns.
const OLD: TimeDelta = TimeDelta::minutes(5);

impl Constructor {
    /// Keeps the metrics of the queue up to date until `shutdown`.
    pub async fn run_gauges(&self, shutdown: CancellationToken) {
        let mut was_old = false;
        while !shutdown.is_cancelled() {
            match self.queue.depth(None).await {
                Ok(depths) => {
                    self.show(depths.all);
                    was_old = self.warn_of_old(depths.all, was_old);
                }
                Err(error) => tracing::debug!(%error, "the queue's depth is not known"),
            }
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = tokio::time::sleep(PERIOD) => {}
            }
        }
    }

    /// Says once that the queue falls behind; whether it does.
    fn warn_of_old(&self, depth: Depth, was_old: bool) -> bool {
        let is_old = depth
            .oldest
            .is_some_and(|oldest| self.clock.now() - oldest >= OLD);
        if is_old && !was_old {
            let Depth {
                batches,
                turns,
                oldest,
                ..
            } = depth;
            tracing::warn!(
                batches,
                turns,
                oldest = oldest.map(|oldest| oldest.to_rfc3339()),
                "the ingestion queue falls behind: turns are accepted, and found minutes later"
            );
        }
        is_old
    }

    fn show(&self, depth: Depth) {
        let waits = |oldest: Timestamp| -> f64 {
            (self.clock.now() - oldest).num_milliseconds() as f64 / 1e3
        };
        metrics::gauge!("memfleet_queue_batches").set(depth.batches as f64);
        metrics::gauge!("memfleet_queue_turns").set(depth.turns as f64);
        metrics::gauge!("memfleet_queue_bytes").set(depth.bytes as f64);
        metrics::gauge!("memfleet_queue_oldest_seconds")
            .set(depth.oldest.map_or(0.0, waits).max(0.0));
        metrics::gauge!("memfleet_dead_letters").set(depth.dead_letters as f64);
    }
}
