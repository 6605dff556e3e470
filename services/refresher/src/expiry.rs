//! Exchanges that ended, and injections that need not be kept any longer.

use std::time::Duration;

use memfleet_ports::exchanges::Exchanges;
use memfleet_ports::injections::Injections;
use memfleet_ports::store;
use tokio_util::sync::CancellationToken;

use crate::LocalRefresher;
use crate::pause::pause;

/// How often it is looked at.
const PERIOD: Duration = Duration::from_hours(1);

impl LocalRefresher {
    /// Removes what is past its time, until `shutdown`.
    pub async fn run_expiry(
        &self,
        exchanges: &dyn Exchanges,
        injections: &dyn Injections,
        shutdown: CancellationToken,
    ) {
        while !shutdown.is_cancelled() {
            let now = self.clock.now();
            tell("exchanges", exchanges.expire(now).await);
            tell("injections", injections.expire(now).await);
            pause(&shutdown, PERIOD).await;
        }
    }
}

fn tell(what: &str, removed: store::Result<u64>) {
    match removed {
        Ok(0) => {}
        Ok(number) => tracing::info!(what, number, "removed what was past its time"),
        Err(error) => tracing::warn!(what, %error, "what is past its time is removed later"),
    }
}
