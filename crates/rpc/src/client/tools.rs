//! The service Tools.

use async_trait::async_trait;
use futures::FutureExt;
use memfleet_domain::Fault;
use memfleet_ports::context::Context;
use memfleet_ports::tools::{
    CloseRequest, Closed, SchemaRequest, ToolCall, ToolResult, ToolSchema, Tools,
};

use super::calls::value;
use super::wire::Wire;
use super::{Client, MAX_ANSWER_BYTES};
use crate::proto::tools_client::ToolsClient;

impl Client {
    fn tools(&self) -> ToolsClient<Wire> {
        ToolsClient::new(self.wire.clone()).max_decoding_message_size(MAX_ANSWER_BYTES)
    }
}

#[async_trait]
impl Tools for Client {
    async fn tool_schema(
        &self,
        context: &Context,
        request: SchemaRequest,
    ) -> Result<Vec<ToolSchema>, Fault> {
        let request = self.request(context, request.into());
        value(context, self.tools().get_tool_schema(request).boxed()).await
    }

    async fn execute_tool(&self, context: &Context, call: ToolCall) -> Result<ToolResult, Fault> {
        let request = self.request(context, call.try_into()?);
        value(context, self.tools().execute_tool(request).boxed()).await
    }

    async fn close_turn(&self, context: &Context, request: CloseRequest) -> Result<Closed, Fault> {
        let request = self.request(context, request.into());
        value(context, self.tools().close_turn(request).boxed()).await
    }
}
