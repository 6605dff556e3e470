//! The retriever role behind the network: a space's searches go to the same replica, which has its index in memory. Any other
//! can answer as well, from the store.

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use memfleet_domain::Fault;
use memfleet_ports::context::Context;
use memfleet_ports::memory::RecallRequest;
use memfleet_ports::retriever::{Found, Query, Retriever};
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

use super::call::{Repeat, Terms, call};
use super::credential::Credential;
use super::{MAX_MESSAGE_BYTES, Peers};
use crate::convert::understand;
use crate::proto;
use crate::proto::internal::EmbeddedRequest;
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
        let request: proto::RecallRequest = RecallRequest::from(query.clone()).try_into()?;
        if let Some(embedded) = query.vectors.as_deref() {
            let message = EmbeddedRequest::new(request.clone(), embedded.clone());
            let answer = self.ask(context, query, message, |channel, request| {
                let mut client = client(channel);
                async move { client.search_embedded(request).await }.boxed()
            });
            match answer.await {
                // A replica of the version before embeds the query itself.
                Err(fault) if fault.reason == "UNIMPLEMENTED" => {}
                answer => return answer,
            }
        }
        let answer = self.ask(context, query, request, |channel, request| {
            let mut client = client(channel);
            async move { client.search(request).await }.boxed()
        });
        answer.await
    }
}

fn client(channel: Channel) -> RetrieverClient<Channel> {
    RetrieverClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES)
}

impl RemoteRetriever {
    async fn ask<Q: Clone>(
        &self,
        context: &Context,
        query: &Query,
        message: Q,
        send: impl Fn(
            Channel,
            Request<Q>,
        ) -> BoxFuture<'static, Result<Response<proto::RecallResponse>, Status>>,
    ) -> Result<Found, Fault> {
        // A search of several spaces goes where the first one's index is, as does a search of that one alone.
        let replicas = self
            .peers
            .ranked(&(&context.tenant, query.spaces.first()))?;
        let terms = Terms {
            credential: &self.credential,
            tenant: Some(&context.tenant),
            deadline: context.deadline,
            repeat: Repeat::Freely,
        };
        understand(call(replicas, terms, message, send).await?)
    }
}
