//! Between two rounds of work that comes round again.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// Waits so long, or until `shutdown`.
pub(crate) async fn pause(shutdown: &CancellationToken, duration: Duration) {
    let _in_full = shutdown
        .run_until_cancelled(tokio::time::sleep(duration))
        .await;
}
