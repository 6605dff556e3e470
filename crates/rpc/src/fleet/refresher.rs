//! The refresher role behind the network.

use async_trait::async_trait;
use futures::FutureExt;
use memfleet_domain::Fault;
use memfleet_ports::context::Context;
use memfleet_ports::refresher::{ForgetReceipt, ForgetRequest, Refresher};

use super::call::{Repeat, Terms, call};
use super::credential::Credential;
use super::{MAX_MESSAGE_BYTES, Peers};
use crate::convert::understand;
use crate::proto;
use crate::proto::internal::refresher_client::RefresherClient;

/// Asks the refreshers of a fleet.
#[derive(Debug, Clone)]
pub struct RemoteRefresher {
    /// Its replicas.
    pub peers: Peers,
    /// What they believe.
    pub credential: Credential,
}

#[async_trait]
impl Refresher for RemoteRefresher {
    /// Once: a second try would give the receipt of a forget that found nothing any more.
    async fn forget(
        &self,
        context: &Context,
        request: &ForgetRequest,
    ) -> Result<ForgetReceipt, Fault> {
        let message: proto::ForgetRequest = request.clone().try_into()?;
        let answer = call(
            self.peers.least_busy()?,
            Terms {
                credential: &self.credential,
                tenant: Some(&context.tenant),
                deadline: context.deadline,
                repeat: Repeat::Never,
            },
            message,
            |channel, request| {
                let client = RefresherClient::new(channel);
                let mut client = client.max_decoding_message_size(MAX_MESSAGE_BYTES);
                async move { client.forget(request).await }.boxed()
            },
        );
        understand(answer.await?)
    }
}
