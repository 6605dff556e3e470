//! The service Assembly.

use std::sync::Arc;

use memfleet_ports::assembly::Assembly;
use tonic::{Request, Response, Status};

use super::calls::Calls;
use crate::proto::{self, assembly_server};

pub(super) struct Service {
    pub assembly: Arc<dyn Assembly>,
    pub calls: Calls,
}

#[tonic::async_trait]
impl assembly_server::Assembly for Service {
    async fn assemble(
        &self,
        request: Request<proto::AssembleRequest>,
    ) -> Result<Response<proto::AssembleResponse>, Status> {
        let (context, request) = self.calls.open(request)?;
        self.calls.answer(
            context
                .within("the assembly", self.assembly.assemble(&context, request))
                .await,
        )
    }

    async fn count_tokens(
        &self,
        request: Request<proto::CountTokensRequest>,
    ) -> Result<Response<proto::CountTokensResponse>, Status> {
        let (context, (tokenizer, texts)) = self.calls.open(request)?;
        self.calls.answer(
            context
                .within(
                    "the counts",
                    self.assembly.count_tokens(&context, &tokenizer, &texts),
                )
                .await,
        )
    }
}
