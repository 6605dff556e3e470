//! The service Maintenance.

use async_trait::async_trait;
use futures::FutureExt;
use memfleet_domain::Fault;
use memfleet_domain::ids::SpaceId;
use memfleet_ports::context::Context;
use memfleet_ports::knowledge::Rebuilding;
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::maintenance::{GraphCheck, Maintenance, Status};
use memfleet_ports::memory::PageRequest;
use memfleet_ports::queue::DeadLetter;

use super::calls::{message, value};
use super::memory::page_token;
use super::wire::Wire;
use super::{Client, MAX_ANSWER_BYTES};
use crate::convert::{LettersOf, understand};
use crate::proto;
use crate::proto::maintenance_client::MaintenanceClient;

impl Client {
    fn maintenance(&self) -> MaintenanceClient<Wire> {
        MaintenanceClient::new(self.wire.clone()).max_decoding_message_size(MAX_ANSWER_BYTES)
    }
}

#[async_trait]
impl Maintenance for Client {
    async fn status(&self, context: &Context) -> Result<Status, Fault> {
        value(
            context,
            self.maintenance()
                .get_status(self.request(context, proto::GetStatusRequest {}))
                .boxed(),
        )
        .await
    }

    async fn dead_letters(
        &self,
        context: &Context,
        space: Option<&SpaceId>,
        page: PageRequest,
    ) -> Result<Page<DeadLetter>, Fault> {
        let request = proto::ListDeadLettersRequest {
            space: space.map(ToString::to_string).unwrap_or_default(),
            page_size: page.limit,
            page_token: page_token(page.after),
        };
        let letters = message(
            context,
            self.maintenance()
                .list_dead_letters(self.request(context, request))
                .boxed(),
        )
        .await?;
        understand(LettersOf(&context.tenant, letters))
    }

    async fn replay(
        &self,
        context: &Context,
        space: &SpaceId,
        acceptances: &[u64],
    ) -> Result<u64, Fault> {
        let request = proto::ReplayDeadLettersRequest {
            space: space.to_string(),
            acceptances: acceptances.to_vec(),
        };
        value(
            context,
            self.maintenance()
                .replay_dead_letters(self.request(context, request))
                .boxed(),
        )
        .await
    }

    async fn rebuild(&self, context: &Context, space: &SpaceId) -> Result<Rebuilding, Fault> {
        let space = space.to_string();
        let request = self.request(context, proto::RebuildRequest { space });
        value(context, self.maintenance().rebuild(request).boxed()).await
    }

    async fn verify_graph(
        &self,
        context: &Context,
        space: &SpaceId,
        after: Option<&PageToken>,
    ) -> Result<GraphCheck, Fault> {
        let request = proto::VerifyGraphRequest {
            space: space.to_string(),
            page_token: page_token(after.cloned()),
        };
        let request = self.request(context, request);
        value(context, self.maintenance().verify_graph(request).boxed()).await
    }

    async fn rebuild_graph(
        &self,
        context: &Context,
        space: &SpaceId,
        after: Option<&PageToken>,
    ) -> Result<GraphCheck, Fault> {
        let request = proto::RebuildGraphRequest {
            space: space.to_string(),
            page_token: page_token(after.cloned()),
        };
        let request = self.request(context, request);
        value(context, self.maintenance().rebuild_graph(request).boxed()).await
    }

    async fn rebuilding(
        &self,
        context: &Context,
        space: &SpaceId,
    ) -> Result<Option<Rebuilding>, Fault> {
        let space = space.to_string();
        let request = self.request(context, proto::GetRebuildRequest { space });
        value(context, self.maintenance().get_rebuild(request).boxed()).await
    }
}
