//! The port.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use memfleet_domain::Scope;
use memfleet_domain::ids::{BatchId, SpaceId, TenantId};
use memfleet_domain::ingestion::Batch;
use memfleet_domain::time::Timestamp;
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::queue::{
    Bounds, DeadLetter, Delivery, Depth, Depths, IngestQueue, Place, Published,
};
use memfleet_ports::store::Result;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::difference::Difference;
use crate::link::Link;
use crate::names::tenant_token;
use crate::options::{Options, OptionsError};
use crate::shared::Shared;

/// The ingestion queue in JetStream; clones share it.
#[derive(Debug, Clone)]
pub struct NatsQueue {
    pub(crate) shared: Arc<Shared>,
    running: Arc<Running>,
}

/// What ends with the last handle.
#[derive(Debug)]
struct Running {
    shared: Arc<Shared>,
    tasks: Vec<AbortHandle>,
    is_closed: AtomicBool,
}

impl Drop for Running {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
        // Without a runtime nobody can be told; the server finds out by itself.
        if !self.is_closed.load(Ordering::Acquire)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let shared = self.shared.clone();
            runtime.spawn(async move { shared.give_back().await });
        }
    }
}

impl NatsQueue {
    /// Begins to connect, and prepares streams and consumers when the server is there; until then every call says that it is
    /// not. Must run inside tokio.
    pub async fn connect(options: Options) -> std::result::Result<Self, OptionsError> {
        let link = Link::open(&options).await?;
        let shared = Arc::new(Shared::new(link, options));
        let tasks = [
            tokio::spawn({
                let shared = shared.clone();
                async move { shared.keep_prepared().await }
            }),
            tokio::spawn({
                let shared = shared.clone();
                async move { shared.keep_alive().await }
            }),
            tokio::spawn({
                let shared = shared.clone();
                async move { shared.hear().await }
            }),
            tokio::spawn({
                let shared = shared.clone();
                async move { shared.look().await }
            }),
        ];
        let running = Arc::new(Running {
            shared: shared.clone(),
            tasks: tasks
                .iter()
                .map(tokio::task::JoinHandle::abort_handle)
                .collect(),
            is_closed: AtomicBool::new(false),
        });
        Ok(Self { shared, running })
    }

    /// Returns when streams and consumers are there; fails when they are not in the time of a request.
    pub async fn prepared(&self) -> Result<()> {
        self.shared.prepared().await
    }

    /// What it was made with.
    pub fn options(&self) -> &Options {
        &self.shared.options
    }

    /// Settings of streams, consumers and server that are not as this build would have them, when they were last compared. They
    /// are left as they are.
    pub fn differences(&self) -> Vec<Difference> {
        self.shared.differences()
    }

    /// Gives back what is held and what was fetched ahead, so that another process has it at once. Nothing is to be asked
    /// of the queue after that.
    pub async fn close(&self) {
        self.running.is_closed.store(true, Ordering::Release);
        for task in &self.running.tasks {
            task.abort();
        }
        let giving_back = self.shared.give_back();
        let _in_time = tokio::time::timeout(self.shared.link.timeout, giving_back).await;
    }
}

#[async_trait]
impl IngestQueue for NatsQueue {
    async fn publish(&self, batch: &Batch, now: Timestamp, bounds: Bounds) -> Result<Published> {
        let publishing = self.shared.publish(batch, now, bounds);
        self.shared.link.within(publishing).await
    }

    async fn take(&self, turns: u32) -> Result<Vec<Delivery>> {
        self.shared.take(turns).await
    }

    async fn acknowledge(&self, acceptances: &[u64]) -> Result<()> {
        self.shared.acknowledge(acceptances).await
    }

    async fn release(&self, acceptances: &[u64]) -> Result<()> {
        self.shared.release(acceptances, true);
        Ok(())
    }

    async fn release_untried(&self, acceptances: &[u64]) -> Result<()> {
        let counted = self.shared.discount(acceptances).await;
        // Given back in any case: what stays held would wait for a restart.
        self.shared.release(acceptances, false);
        counted
    }

    async fn postpone(&self, acceptances: &[u64]) -> Result<()> {
        let counted = self.shared.discount(acceptances).await;
        self.shared.postpone(acceptances);
        counted
    }

    async fn dead_letter(&self, letter: &DeadLetter) -> Result<()> {
        self.shared.prepared().await?;
        self.shared.dead_letter(letter).await
    }

    async fn place(&self, scope: &Scope, batch: BatchId) -> Result<Option<Place>> {
        self.shared.prepared().await?;
        self.shared.place(scope, batch).await
    }

    async fn waiting(&self, scope: &Scope, batch: BatchId) -> Result<Option<Batch>> {
        self.shared.prepared().await?;
        self.shared.waiting(scope, batch).await
    }

    async fn buried(&self, scope: &Scope, batch: BatchId) -> Result<Option<DeadLetter>> {
        self.shared.prepared().await?;
        self.shared.buried(scope, batch).await
    }

    async fn waiting_span(&self, scope: &Scope) -> Result<Option<(u64, u64)>> {
        self.shared.prepared().await?;
        self.shared.waiting_span(scope).await
    }

    async fn waiting_spaces(&self, tenant: &TenantId, limit: usize) -> Result<Vec<SpaceId>> {
        self.shared.prepared().await?;
        self.shared.waiting_spaces(tenant, limit).await
    }

    async fn buried_spaces(&self, tenant: &TenantId) -> Result<Vec<SpaceId>> {
        self.shared.prepared().await?;
        self.shared.buried_spaces(tenant).await
    }

    async fn dead_letters(
        &self,
        tenant: &TenantId,
        space: Option<&SpaceId>,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<DeadLetter>> {
        self.shared.prepared().await?;
        self.shared.dead_letters(tenant, space, limit, after).await
    }

    async fn replay(&self, scope: &Scope, acceptances: &[u64]) -> Result<u64> {
        self.shared.prepared().await?;
        self.shared.replay(scope, acceptances).await
    }

    fn concerns(&self) -> Option<Vec<String>> {
        Some(self.shared.concerns())
    }

    async fn depth(&self, tenant: Option<&TenantId>) -> Result<Depths> {
        self.shared.prepared().await?;
        let token = tenant.map(tenant_token);
        let waiting = self.shared.depths(token.as_deref());
        let buried = self.shared.count_letters(token.as_deref());
        let (mut depths, (own, all)) = futures::try_join!(waiting, buried)?;
        depths.own.dead_letters = own;
        depths.all.dead_letters = all;
        Ok(depths)
    }

    async fn waiting_depth(&self, tenant: &TenantId) -> Result<Depth> {
        self.shared.prepared().await?;
        let depths = self.shared.depths(Some(&tenant_token(tenant))).await?;
        Ok(depths.own)
    }

    async fn ready(&self) {
        let due = self.shared.buffer().next_due();
        tokio::select! {
            () = self.shared.ready.notified() => {}
            () = until(due) => {}
        }
    }
}

/// Returns at this instant, and never where there is none.
async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
