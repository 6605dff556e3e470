//! Retention: turns older than the period that the owner of a space set are removed, as an explicit forget would.

use std::time::Duration;

use memfleet_domain::time::Timestamp;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::erasure::Erased;
use memfleet_ports::events::Event;
use tokio_util::sync::CancellationToken;
use tracing::instrument;

use crate::LocalRefresher;
use crate::pause::pause;

/// How often retention periods are looked at.
const PERIOD: Duration = Duration::from_hours(1);

impl LocalRefresher {
    /// Applies retention periods until `shutdown`.
    pub async fn run_retention(&self, shutdown: CancellationToken) {
        while !shutdown.is_cancelled() {
            if let Err(fault) = self.apply_retention().await {
                tracing::warn!(reason = %fault.reason, "retention is tried again later: {fault}");
            }
            pause(&shutdown, PERIOD).await;
        }
    }

    /// Removes what is past its period now; how many turns. A space that fails is logged and left for the next time.
    pub async fn apply_retention(&self) -> Result<usize, Fault> {
        let mut removed = 0;
        for (scope, before) in self.erasure.expired(self.clock.now()).await? {
            match self.expire(&scope, before).await {
                Ok(turns) => removed += turns,
                Err(fault) => {
                    tracing::warn!(%scope, reason = %fault.reason, "retention is tried again later: {fault}");
                }
            }
        }
        // Once for all spaces: it may rewrite the whole store.
        self.erasure.scrub().await?;
        Ok(removed)
    }

    #[instrument(name = "retention", skip_all, fields(tenant = %scope.tenant, space = %scope.space))]
    async fn expire(&self, scope: &Scope, before: Timestamp) -> Result<usize, Fault> {
        let erased = self.erasure.expire(scope, before).await?;
        if erased == Erased::default() {
            return Ok(0);
        }
        self.events.announce(Event::Forgotten {
            scope: scope.clone(),
        });
        let (turns, undelivered) = (erased.turns.len(), erased.undelivered);
        tracing::info!(%scope, turns, undelivered, "removed by the retention period");
        if erased.unreadable > 0 {
            tracing::warn!(%scope, batches = erased.unreadable, "removed by the retention period though nobody could read them");
        }
        Ok(turns)
    }
}
