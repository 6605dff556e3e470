//! The service Maintenance.

use std::sync::Arc;

use memfleet_ports::maintenance::Maintenance;
use tonic::{Request, Response, Status};

use super::calls::Calls;
use crate::proto::{self, maintenance_server};

pub(super) struct Service {
    pub maintenance: Arc<dyn Maintenance>,
    pub calls: Calls,
}

#[tonic::async_trait]
impl maintenance_server::Maintenance for Service {
    async fn get_status(
        &self,
        request: Request<proto::GetStatusRequest>,
    ) -> Result<Response<proto::GetStatusResponse>, Status> {
        let (context, ()) = self.calls.open(request)?;
        self.calls.answer(
            context
                .within("the status", self.maintenance.status(&context))
                .await,
        )
    }

    async fn list_dead_letters(
        &self,
        request: Request<proto::ListDeadLettersRequest>,
    ) -> Result<Response<proto::ListDeadLettersResponse>, Status> {
        let (context, (space, page)) = self.calls.open(request)?;
        let read = |page| {
            let letters = self
                .maintenance
                .dead_letters(&context, space.as_ref(), page);
            context.within("the dead letters", letters)
        };
        self.calls.answer_page(page, read).await
    }

    async fn replay_dead_letters(
        &self,
        request: Request<proto::ReplayDeadLettersRequest>,
    ) -> Result<Response<proto::ReplayDeadLettersResponse>, Status> {
        let (context, (space, acceptances)) = self.calls.open(request)?;
        self.calls.answer(
            context
                .within(
                    "the replay",
                    self.maintenance.replay(&context, &space, &acceptances),
                )
                .await,
        )
    }

    async fn rebuild(
        &self,
        request: Request<proto::RebuildRequest>,
    ) -> Result<Response<proto::RebuildResponse>, Status> {
        let (context, space) = self.calls.open(request)?;
        let rebuild = self.maintenance.rebuild(&context, &space);
        self.calls
            .answer(context.within("the rebuild", rebuild).await)
    }

    async fn verify_graph(
        &self,
        request: Request<proto::VerifyGraphRequest>,
    ) -> Result<Response<proto::VerifyGraphResponse>, Status> {
        let (context, (space, after)) = self.calls.open(request)?;
        let found = self
            .maintenance
            .verify_graph(&context, &space, after.as_ref());
        self.calls
            .answer(context.within("the look at the graph", found).await)
    }

    async fn rebuild_graph(
        &self,
        request: Request<proto::RebuildGraphRequest>,
    ) -> Result<Response<proto::RebuildGraphResponse>, Status> {
        let (context, (space, after)) = self.calls.open(request)?;
        let found = self
            .maintenance
            .rebuild_graph(&context, &space, after.as_ref());
        self.calls
            .answer(context.within("the repair of the graph", found).await)
    }

    async fn get_rebuild(
        &self,
        request: Request<proto::GetRebuildRequest>,
    ) -> Result<Response<proto::GetRebuildResponse>, Status> {
        let (context, space) = self.calls.open(request)?;
        let rebuilding = self.maintenance.rebuilding(&context, &space);
        self.calls
            .answer(context.within("the rebuild", rebuilding).await)
    }
}
