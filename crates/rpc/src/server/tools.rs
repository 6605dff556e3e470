//! The service Tools.

use std::sync::Arc;

use memfleet_ports::tools::Tools;
use tonic::{Request, Response, Status};

use super::calls::Calls;
use crate::proto::{self, tools_server};

pub(super) struct Service {
    pub tools: Arc<dyn Tools>,
    pub calls: Calls,
}

#[tonic::async_trait]
impl tools_server::Tools for Service {
    async fn get_tool_schema(
        &self,
        request: Request<proto::GetToolSchemaRequest>,
    ) -> Result<Response<proto::GetToolSchemaResponse>, Status> {
        let (context, request) = self.calls.open(request)?;
        let tools = self.tools.tool_schema(&context, request);
        self.calls.answer(context.within("the tools", tools).await)
    }

    async fn execute_tool(
        &self,
        request: Request<proto::ExecuteToolRequest>,
    ) -> Result<Response<proto::ExecuteToolResponse>, Status> {
        let (context, call) = self.calls.open(request)?;
        let result = self.tools.execute_tool(&context, call);
        self.calls
            .answer(context.within("the result", result).await)
    }

    async fn close_turn(
        &self,
        request: Request<proto::CloseTurnRequest>,
    ) -> Result<Response<proto::CloseTurnResponse>, Status> {
        let (context, request) = self.calls.open(request)?;
        let closed = self.tools.close_turn(&context, request);
        self.calls
            .answer(context.within("the exchange", closed).await)
    }
}
