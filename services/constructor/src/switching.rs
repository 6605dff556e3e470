//! A change of the embedding model, carried on from wherever it is: the store says which step comes
//! next in which space, so that a process that ends in the middle leaves nothing undone. The
//! vectors themselves are made by [`crate::backfill`].

mod comparing;

use std::sync::Arc;
use std::time::Duration;

use memfleet_domain::{Fault, Scope};
use memfleet_ports::embedder::Embedder;
use memfleet_ports::feed::IndexFeed;
use memfleet_ports::ledger::Ledger;
use memfleet_ports::model_switch::{ModelSwitches, SpaceComparison, SwitchOrder, SwitchStep};
use memfleet_ports::spaces::SpaceCatalog;
use tokio_util::sync::CancellationToken;

/// Pause between two looks where nothing was to be done …
const PERIOD: Duration = Duration::from_secs(1);
/// … and where no change is wanted.
const IDLE: Duration = Duration::from_secs(2);

/// Spaces that are looked at together.
const SPACES: u32 = 64;

/// Carries a change of the model on.
#[derive(Clone)]
pub struct ModelSwitcher {
    /// Where the steps are.
    pub switches: Arc<dyn ModelSwitches>,
    /// The vectors to compare.
    pub feed: Arc<dyn IndexFeed>,
    /// The texts that serve as queries.
    pub ledger: Arc<dyn Ledger>,
    /// Which embedding spaces a space has.
    pub spaces: Arc<dyn SpaceCatalog>,
    /// Text to vectors.
    pub embedder: Arc<dyn Embedder>,
}

impl ModelSwitcher {
    /// Takes steps until `shutdown`.
    pub async fn run(&self, shutdown: CancellationToken) {
        while !shutdown.is_cancelled() {
            let pause = match self.round().await {
                Ok(Some(0)) => PERIOD,
                Ok(Some(_)) => continue,
                Ok(None) => IDLE,
                Err(fault) => {
                    tracing::warn!(reason = %fault.reason, "the change of the model waits: {fault}");
                    PERIOD
                }
            };
            shutdown
                .run_until_cancelled(tokio::time::sleep(pause))
                .await;
        }
    }

    /// Takes the steps that are due in some spaces; how many, or none where no change is wanted.
    pub async fn round(&self) -> Result<Option<usize>, Fault> {
        let Some(order) = self.switches.order().await? else {
            return Ok(None);
        };
        let steps = self.switches.steps(&order, SPACES).await?;
        let count = steps.len();
        for (scope, step) in steps {
            self.take(&scope, &order, step).await?;
        }
        if count == 0 {
            let progress = self.switches.progress(&order).await?;
            metrics::gauge!("memfleet_model_switch_turns").set(progress.turns as f64);
            metrics::gauge!("memfleet_model_switch_turns_done").set(progress.done as f64);
            metrics::gauge!("memfleet_model_switch_spaces_serving").set(progress.serving as f64);
        }
        Ok(Some(count))
    }

    async fn take(
        &self,
        scope: &Scope,
        order: &SwitchOrder,
        step: SwitchStep,
    ) -> Result<(), Fault> {
        let comparison = match step {
            SwitchStep::Compare => self.compare(scope, order).await?,
            _ => SpaceComparison::default(),
        };
        self.switches.take(scope, order, step, comparison).await?;
        tracing::info!(%scope, target = %order.target, ?step, "a step of a change of the model");
        Ok(())
    }
}
