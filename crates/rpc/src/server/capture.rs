//! The service Capture.

use std::sync::Arc;

use memfleet_ports::capture::Capture;
use tonic::{Request, Response, Status};

use super::calls::Calls;
use crate::proto::{self, capture_server};

pub(super) struct Service {
    pub capture: Arc<dyn Capture>,
    pub calls: Calls,
}

#[tonic::async_trait]
impl capture_server::Capture for Service {
    async fn record_turn(
        &self,
        request: Request<proto::RecordTurnRequest>,
    ) -> Result<Response<proto::RecordTurnResponse>, Status> {
        let (context, request) = self.calls.open(request)?;
        let recorded = self.capture.record_turn(&context, request);
        self.calls
            .answer(context.within("the ingestion queue", recorded).await)
    }
}
