//! How full the queue is, for whoever runs the node: tenants see their own part only.

use std::time::Duration;

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
                Ok(depths) => show(depths.all),
                Err(error) => tracing::debug!(%error, "the queue's depth is not known"),
            }
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = tokio::time::sleep(PERIOD) => {}
            }
        }
    }
}

fn show(depth: Depth) {
    metrics::gauge!("memfleet_queue_batches").set(depth.batches as f64);
    metrics::gauge!("memfleet_queue_turns").set(depth.turns as f64);
    metrics::gauge!("memfleet_queue_bytes").set(depth.bytes as f64);
    metrics::gauge!("memfleet_dead_letters").set(depth.dead_letters as f64);
}
