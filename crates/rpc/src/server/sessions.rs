//! The service Sessions.

use std::sync::Arc;

use memfleet_ports::memory::Memory;
use tonic::{Request, Response, Status};

use super::calls::Calls;
use crate::proto::{self, sessions_server};

pub(super) struct Service {
    pub memory: Arc<dyn Memory>,
    pub calls: Calls,
}

#[tonic::async_trait]
impl sessions_server::Sessions for Service {
    async fn list_sessions(
        &self,
        request: Request<proto::ListSessionsRequest>,
    ) -> Result<Response<proto::ListSessionsResponse>, Status> {
        let (context, (space, page)) = self.calls.open(request)?;
        let read = |page| {
            let sessions = self.memory.sessions(&context, &space, page);
            context.within("the sessions", sessions)
        };
        self.calls.answer_page(page, read).await
    }
}
