//! The `Maintenance` service: what the node is doing, and what it could not do.

use async_trait::async_trait;
use memfleet_domain::ids::SpaceId;
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::audit::AuditKind;
use memfleet_ports::context::Context;
use memfleet_ports::events::Event;
use memfleet_ports::knowledge::Rebuilding;
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::maintenance::{GraphCheck, Maintenance, Status};
use memfleet_ports::memory::PageRequest;
use memfleet_ports::queue::{DeadLetter, Depth};
use tracing::field::Empty;
use tracing::{Span, instrument};

use crate::Gateway;
use crate::access::reaches_all;

#[async_trait]
impl Maintenance for Gateway {
    #[instrument(skip_all, fields(tenant = %context.tenant))]
    async fn status(&self, context: &Context) -> Result<Status, Fault> {
        // A tenant's own: how much the others have waiting is none of its business.
        let depth = self.queue.depth(Some(&context.tenant)).await;
        let depth = depth.map(|depths| depths.own);
        let store = self.spaces.list(&context.tenant, 1, None).await;
        let embedder = self.embedder.embed_query("status".to_owned()).await;
        for (part, trouble) in [
            ("store", store.err().map(Fault::from)),
            ("queue", depth.as_ref().err().cloned().map(Fault::from)),
            ("embedder", embedder.err()),
        ] {
            self.health.report(part, trouble.as_ref(), self.clock.now());
        }
        Ok(Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            embedding_space: self.embedder.space().await.ok(),
            parts: self.health.parts(),
            queue: depth.unwrap_or_else(|_| Depth::default()),
        })
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = space.map(SpaceId::as_str)))]
    async fn dead_letters(
        &self,
        context: &Context,
        space: Option<&SpaceId>,
        page: PageRequest,
    ) -> Result<Page<DeadLetter>, Fault> {
        if space.is_none() && !reaches_all(context) {
            let message =
                "this credential does not reach every space: name one of those that it does";
            let fault = Fault::new(FaultKind::PermissionDenied, "SPACE_NOT_GRANTED", message);
            return Err(fault.with("right", "read"));
        }
        let letters = self
            .queue
            .dead_letters(&context.tenant, space, page.limit, page.after.as_ref())
            .await?;
        if letters.items.is_empty()
            && let Some(space) = space
        {
            // A space of which nothing was ever stored may have dead letters, and one that has none must exist.
            self.existing(context, space).await?;
        }
        Ok(letters)
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %space, batches = Empty))]
    async fn replay(
        &self,
        context: &Context,
        space: &SpaceId,
        acceptances: &[u64],
    ) -> Result<u64, Fault> {
        self.note_in_space(context, AuditKind::ReplayBegun, space, [])
            .await?;
        let scope = context.scope(space);
        let replayed = self.queue.replay(&scope, acceptances).await?;
        Span::current().record("batches", replayed);
        if replayed == 0 {
            self.existing(context, space).await?;
        }
        Ok(replayed)
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %space))]
    async fn rebuild(&self, context: &Context, space: &SpaceId) -> Result<Rebuilding, Fault> {
        self.note_in_space(context, AuditKind::RebuildBegun, space, [])
            .await?;
        let scope = context.scope(space);
        let begun = self.knowledge.begin_rebuild(&scope).await?;
        if begun.is_some() {
            // Wakes the agent that rebuilds.
            self.events.announce(Event::Derived { scope });
        }
        begun.ok_or_else(|| Fault::not_found(format_args!("space `{space}`")))
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %space))]
    async fn verify_graph(
        &self,
        context: &Context,
        space: &SpaceId,
        after: Option<&PageToken>,
    ) -> Result<GraphCheck, Fault> {
        self.checked(context, space, after, false).await
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %space))]
    async fn rebuild_graph(
        &self,
        context: &Context,
        space: &SpaceId,
        after: Option<&PageToken>,
    ) -> Result<GraphCheck, Fault> {
        self.checked(context, space, after, true).await
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %space))]
    async fn rebuilding(
        &self,
        context: &Context,
        space: &SpaceId,
    ) -> Result<Option<Rebuilding>, Fault> {
        let scope = self.existing(context, space).await?;
        Ok(self.knowledge.rebuilding(&scope).await?)
    }
}
