//! The retriever role behind the network: a space's searches go to the same replica, which has its index in memory. Any other
//! can answer as well, from the store.

use async_trait::async_trait;
use futures::FutureExt;
use memfleet_domain::Fault;
use memfleet_ports::context::Context;
use memfleet_ports::memory::RecallRequest;
use memfleet_ports::retriever::{Found, Query, Retriever};

use super::call::{Repeat, Terms, call};
use super::credential::Credential;
use super::{MAX_MESSAGE_BYTES, Peers};
use crate::convert::understand;
use crate::proto;
use crate::proto::internal::retriever_client::RetrieverClient;

/// Asks the retrievers of a fleet.
#[derive(Debug, Clone)]
pub struct RemoteRetriever {
    /// Its replicas.
    pub peers: Peers,
    /// What they believe.
    pub credential: Credential,
}

#[async_trait]
impl Retriever for RemoteRetriever {
    async fn search(&self, context: &Context, query: &Query) -> Result<Found, Fault> {
        let message: proto::RecallRequest = RecallRequest {
            query: query.clone(),
            wait_for: Vec::new(),
        }
        .try_into()?;
        // A search of several spaces goes where the first one's index is, as does a search of that one alone.
        let replicas = self
            .peers
            .ranked(&(&context.tenant, query.spaces.first()))?;
        let answer = call(
            replicas,
            Terms {
                credential: &self.credential,
                tenant: Some(&context.tenant),
                deadline: context.deadline,
                repeat: Repeat::Freely,
            },
            message,
            |channel, request| {
                let client = RetrieverClient::new(channel);
                let mut client = client.max_decoding_message_size(MAX_MESSAGE_BYTES);
                async move { client.search(request).await }.boxed()
            },
        );
        understand(answer.await?)
    }
}
