//! The audit log keeps its records for a configured time.

use std::time::Duration;

use memfleet_domain::time::Timestamp;
use memfleet_ports::audit::AuditLog;
use tokio_util::sync::CancellationToken;

use crate::LocalRefresher;
use crate::pause::pause;

/// How often it is looked at.
const PERIOD: Duration = Duration::from_hours(1);

impl LocalRefresher {
    /// Removes records that are older than `retention`, until `shutdown`.
    pub async fn run_audit_retention(
        &self,
        log: &dyn AuditLog,
        retention: Duration,
        shutdown: CancellationToken,
    ) {
        while !shutdown.is_cancelled() {
            match log.expire(before(self.clock.now(), retention)).await {
                Ok(0) => {}
                Ok(records) => tracing::info!(records, "removed from the audit log"),
                Err(error) => tracing::warn!(%error, "the audit log is shortened later"),
            }
            pause(&shutdown, PERIOD).await;
        }
    }
}

/// The beginning of time for a period that is longer than that.
fn before(now: Timestamp, retention: Duration) -> Timestamp {
    let period = chrono::TimeDelta::from_std(retention).ok();
    let start = period.and_then(|period| now.checked_sub_signed(period));
    start.unwrap_or(Timestamp::UNIX_EPOCH)
}
