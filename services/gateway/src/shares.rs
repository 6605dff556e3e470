//! Calls that compute (searches with their facts, counts of tokens), in shares of tenants. A tenant that is alone computes as
//! much at once as it likes; where several do, each has its share of the processors, one call at
//! least, and what is more waits in the tenant's own line. A tenant that has such a line computes
//! with low priority.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use memfleet_domain::ids::TenantId;
use memfleet_ports::context::CallPriority;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How long after its last call a tenant still counts among those who compute, and after its last
/// waiting call among those who crowd.
const LATELY: Duration = Duration::from_secs(1);

/// Calls of a process that compute, and those that wait to.
#[derive(Debug)]
pub struct TenantShares {
    processors: usize,
    lines: Mutex<HashMap<TenantId, Line>>,
}

/// Those of one tenant.
#[derive(Debug)]
struct Line {
    working: usize,
    waiting: VecDeque<oneshot::Sender<ComputingPlace>>,
    seen: Instant,
    /// When a call last had to wait.
    crowded: Option<Instant>,
}

/// A call that computes; the next one of its tenant begins once this is dropped.
#[derive(Debug)]
pub(crate) struct ComputingPlace {
    shares: Arc<TenantShares>,
    tenant: TenantId,
    priority: CallPriority,
}

impl ComputingPlace {
    /// Rank of the computation in it.
    pub(crate) fn priority(&self) -> CallPriority {
        self.priority
    }
}

impl TenantShares {
    /// Shares of so many processors.
    pub fn of(processors: usize) -> Self {
        Self {
            processors,
            lines: Mutex::default(),
        }
    }

    /// Shares without a bound, where others compute for this process.
    pub fn unbounded() -> Self {
        Self::of(usize::MAX)
    }

    /// Waits until one more call of the tenant may compute.
    pub(crate) async fn take(self: &Arc<Self>, tenant: &TenantId) -> ComputingPlace {
        let (sender, turn) = oneshot::channel();
        self.change(tenant, |line| line.waiting.push_back(sender));
        turn.await
            .expect("a line keeps the senders of those who wait in it")
    }

    /// Changes the line of a tenant, and lets those begin whose turn it is then.
    fn change(self: &Arc<Self>, tenant: &TenantId, change: impl FnOnce(&mut Line)) {
        let mut next = Vec::new();
        let mut lines = self.lines();
        let now = Instant::now();
        lines.retain(|of, line| of == tenant || line.is_active(now));
        let line = lines.entry(tenant.clone()).or_insert_with(|| Line {
            working: 0,
            waiting: VecDeque::new(),
            seen: now,
            crowded: None,
        });
        line.seen = now;
        change(line);
        let share = match lines.len() {
            1 => usize::MAX,
            tenants => (self.processors / tenants).max(1),
        };
        let mut priority = CallPriority::Normal;
        if let Some(line) = lines.get_mut(tenant) {
            if line.working + line.waiting.len() > share {
                line.crowded = Some(now);
            }
            if share < usize::MAX && line.crowded.is_some_and(|at| at + LATELY > now) {
                priority = CallPriority::Low;
            }
            while line.working < share
                && let Some(sender) = line.waiting.pop_front()
            {
                // Callers that left are passed over here: each of their places would come back on the stack.
                if !sender.is_closed() {
                    line.working += 1;
                    next.push(sender);
                }
            }
        }
        drop(lines);
        for sender in next {
            let place = ComputingPlace {
                shares: self.clone(),
                tenant: tenant.clone(),
                priority,
            };
            // The place of a caller that left comes back here, and goes on to the next one.
            let _left = sender.send(place);
        }
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<TenantId, Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for TenantShares {
    /// Shares of the processors of this machine.
    fn default() -> Self {
        Self::of(std::thread::available_parallelism().map_or(1, NonZeroUsize::get))
    }
}

impl Line {
    fn is_active(&self, now: Instant) -> bool {
        self.working > 0 || !self.waiting.is_empty() || self.seen + LATELY > now
    }
}

impl Drop for ComputingPlace {
    fn drop(&mut self) {
        self.shares.change(&self.tenant, |line| line.working -= 1);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn tenant(name: &str) -> TenantId {
        TenantId::new(name).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_tenant_beside_another_has_its_share_of_the_processors() {
        let shares = Arc::new(TenantShares::of(4));
        let (acme, beta) = (tenant("acme"), tenant("beta"));
        let alone: Vec<_> = futures::future::join_all((0..10).map(|_| shares.take(&acme))).await;
        drop(shares.take(&beta).await);
        drop(alone);
        let held = [shares.take(&acme).await, shares.take(&acme).await];
        let mut third = Box::pin(shares.take(&acme));
        assert!((&mut third).now_or_never().is_none());
        let other = shares.take(&beta).await;
        assert_eq!(other.priority(), CallPriority::Normal);
        drop(held);
        let third = third.await;
        assert_eq!(third.priority(), CallPriority::Low);
        drop(third);
        drop(other);
        tokio::time::advance(LATELY).await;
        let alone = futures::future::join_all((0..10).map(|_| shares.take(&acme))).await;
        assert!(
            alone
                .iter()
                .all(|place| place.priority() == CallPriority::Normal)
        );
        assert_eq!(shares.lines().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_leaves_the_line_keeps_no_place() {
        let shares = Arc::new(TenantShares::of(1));
        let (acme, beta) = (tenant("acme"), tenant("beta"));
        drop(shares.take(&beta).await);
        let held = shares.take(&acme).await;
        let mut left = Box::pin(shares.take(&acme));
        let mut stays = Box::pin(shares.take(&acme));
        assert!((&mut left).now_or_never().is_none() && (&mut stays).now_or_never().is_none());
        drop(left);
        // Enough of them to use up the stack if each place came back from one to the next.
        for _ in 0..100_000 {
            assert!(shares.take(&acme).now_or_never().is_none());
        }
        drop(held);
        drop(stays.await);
        assert_eq!(shares.lines()[&acme].working, 0);
    }
}
