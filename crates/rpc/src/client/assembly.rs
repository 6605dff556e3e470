//! The service Assembly.

use async_trait::async_trait;
use futures::FutureExt;
use memfleet_domain::Fault;
use memfleet_domain::model_profile::ModelProfile;
use memfleet_ports::assembly::{
    AssembleRequest, Assembled, Assembly, Counted, GateRequest, Gated, RenderRequest,
};
use memfleet_ports::context::Context;

use super::calls::value;
use super::wire::Wire;
use super::{Client, MAX_ANSWER_BYTES};
use crate::proto;
use crate::proto::assembly_client::AssemblyClient;

impl Client {
    fn assembly(&self) -> AssemblyClient<Wire> {
        AssemblyClient::new(self.wire.clone()).max_decoding_message_size(MAX_ANSWER_BYTES)
    }
}

#[async_trait]
impl Assembly for Client {
    async fn assemble(
        &self,
        context: &Context,
        request: AssembleRequest,
    ) -> Result<Assembled, Fault> {
        let request = self.request(context, request.try_into()?);
        value(context, self.assembly().assemble(request).boxed()).await
    }

    async fn gate(&self, context: &Context, request: GateRequest) -> Result<Gated, Fault> {
        let request = self.request(context, request.into());
        value(context, self.assembly().gate(request).boxed()).await
    }

    async fn render(&self, context: &Context, request: RenderRequest) -> Result<Assembled, Fault> {
        let request = self.request(context, request.into());
        value(context, self.assembly().render(request).boxed()).await
    }

    async fn model_profiles(&self, context: &Context) -> Result<Vec<ModelProfile>, Fault> {
        let request = self.request(context, proto::ListModelProfilesRequest {});
        value(
            context,
            self.assembly().list_model_profiles(request).boxed(),
        )
        .await
    }

    async fn put_model_profile(
        &self,
        context: &Context,
        profile: ModelProfile,
    ) -> Result<(ModelProfile, u32), Fault> {
        let profile = Some(profile.into());
        let request = self.request(context, proto::PutModelProfileRequest { profile });
        value(context, self.assembly().put_model_profile(request).boxed()).await
    }

    async fn count_tokens(
        &self,
        context: &Context,
        tokenizer: &str,
        texts: &[String],
    ) -> Result<Counted, Fault> {
        let request = proto::CountTokensRequest {
            tokenizer: tokenizer.to_owned(),
            texts: texts.to_vec(),
        };
        value(
            context,
            self.assembly()
                .count_tokens(self.request(context, request))
                .boxed(),
        )
        .await
    }
}
