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

    async fn gate(
        &self,
        request: Request<proto::GateRequest>,
    ) -> Result<Response<proto::GateResponse>, Status> {
        let (context, request) = self.calls.open(request)?;
        let gated = self.assembly.gate(&context, request);
        self.calls.answer(context.within("the gates", gated).await)
    }

    async fn render(
        &self,
        request: Request<proto::RenderRequest>,
    ) -> Result<Response<proto::AssembleResponse>, Status> {
        let (context, request) = self.calls.open(request)?;
        let rendered = self.assembly.render(&context, request);
        self.calls
            .answer(context.within("the block", rendered).await)
    }

    async fn list_model_profiles(
        &self,
        request: Request<proto::ListModelProfilesRequest>,
    ) -> Result<Response<proto::ListModelProfilesResponse>, Status> {
        let (context, ()) = self.calls.open(request)?;
        let profiles = self.assembly.model_profiles(&context);
        self.calls
            .answer(context.within("the profiles", profiles).await)
    }

    async fn put_model_profile(
        &self,
        request: Request<proto::PutModelProfileRequest>,
    ) -> Result<Response<proto::PutModelProfileResponse>, Status> {
        let (context, profile) = self.calls.open(request)?;
        let put = self.assembly.put_model_profile(&context, profile);
        self.calls.answer(context.within("the profile", put).await)
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
