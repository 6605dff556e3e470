//! How full the queue is, for whoever runs the node: tenants see their own part only.

use std::time::Duration;

use memfleet_domain::Timestamp;
use memfleet_ports::queue::Depth;
use tokio_util::sync::CancellationToken;

use crate::Constructor;

/// How often the queue is looked at.
const PERIOD: Duration = Duration::from_secs(10);

impl Constructor {
    /// Keeps the metrics of the queue up to date until `shutdown`.
    pub async fn run_gauges(&self, shutdown: CancellationToken) {
        while !shutdown.is_cancelled() {
            match self.queue.depth(None).await {
                Ok(depths) => self.show(depths.all),
                Err(error) => tracing::debug!(%error, "the queue's depth is not known"),
            }
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = tokio::time::sleep(PERIOD) => {}
            }
        }
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
