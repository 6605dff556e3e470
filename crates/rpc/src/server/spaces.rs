//! The service Spaces.

use std::sync::Arc;

use memfleet_ports::memory::Memory;
use tonic::{Request, Response, Status};

use super::calls::Calls;
use crate::proto::{self, spaces_server};

pub(super) struct Service {
    pub memory: Arc<dyn Memory>,
    pub calls: Calls,
}

#[tonic::async_trait]
impl spaces_server::Spaces for Service {
    async fn put_space(
        &self,
        request: Request<proto::PutSpaceRequest>,
    ) -> Result<Response<proto::PutSpaceResponse>, Status> {
        let (context, (space, settings)) = self.calls.open(request)?;
        self.calls.answer(
            context
                .within(
                    "the space",
                    self.memory.put_space(&context, &space, settings),
                )
                .await,
        )
    }

    async fn list_spaces(
        &self,
        request: Request<proto::ListSpacesRequest>,
    ) -> Result<Response<proto::ListSpacesResponse>, Status> {
        let (context, page) = self.calls.open(request)?;
        let read = |page| context.within("the spaces", self.memory.spaces(&context, page));
        self.calls.answer_page(page, read).await
    }
}
