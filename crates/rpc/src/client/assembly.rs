//! The service Assembly.

use async_trait::async_trait;
use futures::FutureExt;
use memfleet_domain::Fault;
use memfleet_ports::assembly::{AssembleRequest, Assembled, Assembly};
use memfleet_ports::context::Context;
use tonic::transport::Channel;

use super::calls::value;
use super::{Client, MAX_ANSWER_BYTES};
use crate::proto;
use crate::proto::assembly_client::AssemblyClient;

impl Client {
    fn assembly(&self) -> AssemblyClient<Channel> {
        AssemblyClient::new(self.channel.clone()).max_decoding_message_size(MAX_ANSWER_BYTES)
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

    async fn count_tokens(
        &self,
        context: &Context,
        tokenizer: &str,
        texts: &[String],
    ) -> Result<Vec<u32>, Fault> {
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
