//! Retention: what the owner of a space does not want to keep is removed. Turns that are too old or too many go as an explicit forget
//! would have them go; of facts and episodes the versions that hold no longer.

use std::time::Duration;

use memfleet_domain::{Fault, Scope};
use memfleet_ports::erasure::Erased;
use memfleet_ports::events::Event;
use tokio_util::sync::CancellationToken;
use tracing::instrument;

use crate::LocalRefresher;
use crate::pause::pause;

/// How often retention periods are looked at.
const PERIOD: Duration = Duration::from_hours(1);

/// Turns, and versions, that one transaction removes: writers wait for it, and what is left when the process ends is for the next time.
const STEP: u32 = 4_096;

/// What retention removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Removed {
    /// Turns.
    pub turns: u64,
    /// Versions of facts and episodes that held no longer.
    pub versions: u64,
}

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

    /// Removes what is not to be kept any longer. A space that fails is logged and left for the next time.
    pub async fn apply_retention(&self) -> Result<Removed, Fault> {
        let mut removed = Removed::default();
        for scope in self.erasure.expired(self.clock.now()).await? {
            if let Err(fault) = self.expire(&scope, &mut removed).await {
                tracing::warn!(%scope, reason = %fault.reason, "retention is tried again later: {fault}");
            }
        }
        // Once for all spaces: it may rewrite the whole store.
        self.erasure.scrub().await?;
        Ok(removed)
    }

    /// Step by step, until one removes no more than is left.
    #[instrument(name = "retention", skip_all, fields(tenant = %scope.tenant, space = %scope.space))]
    async fn expire(&self, scope: &Scope, removed: &mut Removed) -> Result<(), Fault> {
        loop {
            let erased = self.erasure.expire(scope, self.clock.now(), STEP).await?;
            if erased == Erased::default() {
                return Ok(());
            }
            self.tell(scope, &erased);
            let turns = erased.turns.len() as u64;
            removed.turns += turns;
            removed.versions += erased.versions;
            // What one version kept may go once that is gone.
            if turns < u64::from(STEP) && erased.versions == 0 {
                return Ok(());
            }
        }
    }

    fn tell(&self, scope: &Scope, erased: &Erased) {
        self.events.announce(Event::Forgotten {
            scope: scope.clone(),
        });
        let (turns, undelivered) = (erased.turns.len(), erased.undelivered);
        let versions = erased.versions;
        tracing::info!(%scope, turns, undelivered, versions, "removed by retention");
        if erased.unreadable > 0 {
            tracing::warn!(%scope, batches = erased.unreadable, "removed by retention though nobody could read them");
        }
    }
}
