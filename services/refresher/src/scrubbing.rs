//! Scrubs that are still due: after a crash, or because the one that followed a removal failed.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::LocalRefresher;
use crate::pause::pause;

/// How often it is asked whether a scrub is due; twice as long after each that failed …
const PERIOD: Duration = Duration::from_mins(1);
/// … up to this.
const LONGEST: Duration = Duration::from_hours(1);

impl LocalRefresher {
    /// Makes up for scrubs until `shutdown`.
    pub async fn run_scrubbing(&self, shutdown: CancellationToken) {
        let mut wait = PERIOD;
        while !shutdown.is_cancelled() {
            match self.erasure.scrub().await {
                Ok(()) => wait = PERIOD,
                Err(error) => {
                    tracing::warn!(%error, ?wait, "text of forgotten turns may still be in the file");
                    wait = wait.saturating_mul(2).min(LONGEST);
                }
            }
            pause(&shutdown, wait).await;
        }
    }
}
