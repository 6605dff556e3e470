//! Retention: turns older than the period that the owner of a space set are removed, as an explicit forget would.

use std::time::Duration;

use memfleet_domain::Fault;
use memfleet_domain::time::TimeRange;
use memfleet_ports::events::Event;
use memfleet_ports::filter::TurnFilter;
use tokio_util::sync::CancellationToken;

use crate::LocalRefresher;

/// How often retention periods are looked at.
const PERIOD: Duration = Duration::from_hours(1);

impl LocalRefresher {
    /// Applies retention periods until `shutdown`.
    pub async fn run_retention(&self, shutdown: CancellationToken) {
        while !shutdown.is_cancelled() {
            if let Err(fault) = self.apply_retention().await {
                tracing::warn!(reason = %fault.reason, "retention is tried again later: {fault}");
            }
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = tokio::time::sleep(PERIOD) => {}
            }
        }
    }

    /// Removes what is past its period now; how many turns.
    pub async fn apply_retention(&self) -> Result<usize, Fault> {
        let mut removed = 0;
        for (scope, before) in self.erasure.expired(self.clock.now()).await? {
            let time = TimeRange {
                start: None,
                end: Some(before),
            };
            let erased = self
                .erasure
                .erase(
                    &scope,
                    &TurnFilter {
                        time,
                        ..TurnFilter::default()
                    },
                )
                .await?;
            removed += erased.turns.len();
            tracing::info!(%scope, turns = erased.turns.len(), "removed by the retention period");
            self.events.announce(Event::Forgotten { scope });
        }
        Ok(removed)
    }
}
