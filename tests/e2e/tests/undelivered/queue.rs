//! The queue of a [`Whole`] is that of its erasure.

use async_trait::async_trait;
use memfleet_domain::Scope;
use memfleet_domain::ids::{BatchId, SpaceId, TenantId};
use memfleet_domain::ingestion::Batch;
use memfleet_domain::time::Timestamp;
use memfleet_nats::NatsQueue;
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::queue::{
    Bounds, DeadLetter, Delivery, Depth, Depths, IngestQueue, Place, Published,
};
use memfleet_ports::store::Result;

use crate::whole::Whole;

#[async_trait]
impl IngestQueue for Whole<NatsQueue> {
    async fn publish(&self, batch: &Batch, now: Timestamp, bounds: Bounds) -> Result<Published> {
        self.queue.publish(batch, now, bounds).await
    }

    async fn take(&self, turns: u32) -> Result<Vec<Delivery>> {
        self.queue.take(turns).await
    }

    async fn acknowledge(&self, acceptances: &[u64]) -> Result<()> {
        self.queue.acknowledge(acceptances).await
    }

    async fn release(&self, acceptances: &[u64]) -> Result<()> {
        self.queue.release(acceptances).await
    }

    async fn release_untried(&self, acceptances: &[u64]) -> Result<()> {
        self.queue.release_untried(acceptances).await
    }

    async fn postpone(&self, acceptances: &[u64]) -> Result<()> {
        self.queue.postpone(acceptances).await
    }

    async fn dead_letter(&self, letter: &DeadLetter) -> Result<()> {
        self.queue.dead_letter(letter).await
    }

    async fn place(&self, scope: &Scope, batch: BatchId) -> Result<Option<Place>> {
        self.queue.place(scope, batch).await
    }

    async fn waiting(&self, scope: &Scope, batch: BatchId) -> Result<Option<Batch>> {
        self.queue.waiting(scope, batch).await
    }

    async fn buried(&self, scope: &Scope, batch: BatchId) -> Result<Option<DeadLetter>> {
        self.queue.buried(scope, batch).await
    }

    async fn waiting_span(&self, scope: &Scope) -> Result<Option<(u64, u64)>> {
        self.queue.waiting_span(scope).await
    }

    async fn waiting_spaces(&self, tenant: &TenantId, limit: usize) -> Result<Vec<SpaceId>> {
        self.queue.waiting_spaces(tenant, limit).await
    }

    async fn buried_spaces(&self, tenant: &TenantId) -> Result<Vec<SpaceId>> {
        self.queue.buried_spaces(tenant).await
    }

    async fn dead_letters(
        &self,
        tenant: &TenantId,
        space: Option<&SpaceId>,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<DeadLetter>> {
        self.queue.dead_letters(tenant, space, limit, after).await
    }

    async fn replay(&self, scope: &Scope, acceptances: &[u64]) -> Result<u64> {
        self.queue.replay(scope, acceptances).await
    }

    async fn depth(&self, tenant: Option<&TenantId>) -> Result<Depths> {
        self.queue.depth(tenant).await
    }

    async fn waiting_depth(&self, tenant: &TenantId) -> Result<Depth> {
        self.queue.waiting_depth(tenant).await
    }

    async fn ready(&self) {
        self.queue.ready().await;
    }
}
