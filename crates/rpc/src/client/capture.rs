//! The service Capture.

use async_trait::async_trait;
use futures::FutureExt;
use memfleet_domain::Fault;
use memfleet_ports::capture::{Capture, RecordTurnRequest, Recorded};
use memfleet_ports::context::Context;

use super::Client;
use super::calls::value;
use crate::proto::capture_client::CaptureClient;

#[async_trait]
impl Capture for Client {
    async fn record_turn(
        &self,
        context: &Context,
        request: RecordTurnRequest,
    ) -> Result<Recorded, Fault> {
        let request = self.request(context, request.into());
        let mut client = CaptureClient::new(self.wire.clone());
        value(context, client.record_turn(request).boxed()).await
    }
}
