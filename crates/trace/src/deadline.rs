//! The deadline of the call that a piece of work is done for, for adapters whose servers can give
//! up by themselves.

use std::time::Duration;

use tokio::time::Instant;

tokio::task_local! {
    static DUE: Instant;
}

/// Does the work of a call that is due at an instant, if it is due at all. Tasks that the work
/// spawns have no deadline.
pub async fn due_at<T>(due: Option<Instant>, work: impl Future<Output = T>) -> T {
    match due {
        Some(due) => DUE.scope(due, work).await,
        None => work.await,
    }
}

/// Time that is left for the call that this work is done for, zero once its deadline has passed;
/// absent where nothing is due.
pub fn remaining() -> Option<Duration> {
    let due = DUE.try_with(|due| *due).ok()?;
    Some(due.saturating_duration_since(Instant::now()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn work_inside_a_call_knows_what_is_left() {
        assert_eq!(remaining(), None);
        let due = Instant::now() + Duration::from_secs(5);
        due_at(Some(due), async {
            tokio::time::advance(Duration::from_secs(2)).await;
            assert_eq!(remaining(), Some(Duration::from_secs(3)));
            tokio::time::advance(Duration::from_secs(9)).await;
            assert_eq!(remaining(), Some(Duration::ZERO));
        })
        .await;
        assert_eq!(due_at(None, async { remaining() }).await, None);
    }
}
