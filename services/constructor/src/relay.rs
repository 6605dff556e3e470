//! Tells the rest of the fleet what happened, from the outbox of the store. Any constructor does it, one at a time.

use std::sync::Arc;
use std::time::Duration;

use memfleet_domain::{Clock, Timestamp};
use memfleet_ports::events::Events;
use memfleet_ports::outbox::{Audience, Backlog, Outbox};
use memfleet_ports::store::Result;
use tokio_util::sync::CancellationToken;

/// Happenings that are told together.
const ROUND: u32 = 256;

/// Longest pause between two looks; what this process announces is told at once.
const LOOK: Duration = Duration::from_secs(1);

/// Pause after a failure.
const PAUSE: Duration = Duration::from_secs(2);

/// How often the backlog is counted.
const PERIOD: Duration = Duration::from_secs(10);

/// From the outbox to whoever listens.
#[derive(Clone)]
pub struct Relay {
    /// Where it waits.
    pub outbox: Arc<dyn Outbox>,
    /// Who is told.
    pub audience: Arc<dyn Audience>,
    /// What happens in this process.
    pub events: Events,
    /// Tells how long it has waited.
    pub clock: Arc<dyn Clock>,
}

impl Relay {
    /// Tells until `shutdown`, which cuts off what was not acknowledged: it is told again.
    pub async fn run(&self, shutdown: CancellationToken) {
        let working = async { tokio::join!(self.tell(), self.count()) };
        shutdown.run_until_cancelled(working).await;
    }

    /// Tells what waits, once; the answer is how many.
    pub async fn round(&self) -> Result<u32> {
        self.outbox.relay(&*self.audience, ROUND).await
    }

    async fn tell(&self) {
        let mut announced = self.events.listen();
        let mut works = true;
        loop {
            let told = self.round().await;
            match &told {
                Err(error) if works => tracing::warn!(%error, "events wait to be told"),
                Ok(_) if !works => tracing::info!("events are told again"),
                _ => {}
            }
            works = told.is_ok();
            match told {
                Ok(ROUND) => {}
                Ok(_) => {
                    let _either = tokio::time::timeout(LOOK, announced.recv()).await;
                    // One look for all that was announced together.
                    announced = announced.resubscribe();
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    async fn count(&self) {
        loop {
            match self.outbox.backlog().await {
                Ok(backlog) => self.show(backlog),
                Err(error) => tracing::debug!(%error, "the outbox cannot be counted"),
            }
            tokio::time::sleep(PERIOD).await;
        }
    }

    fn show(&self, backlog: Backlog) {
        let waits = |oldest: Timestamp| (self.clock.now() - oldest).num_milliseconds() as f64 / 1e3;
        metrics::gauge!("memfleet_outbox_events").set(backlog.events as f64);
        metrics::gauge!("memfleet_outbox_oldest_seconds")
            .set(backlog.oldest.map_or(0.0, waits).max(0.0));
    }
}
