//! Roles served to the rest of their fleet.

use std::sync::Arc;

use futures::future::try_join_all;
use memfleet_domain::Fault;
use memfleet_domain::embedding::{EmbeddingSpace, PassageVectors};
use memfleet_ports::embedder::Embedder;
use memfleet_ports::memory::RecallRequest;
use memfleet_ports::refresher::Refresher;
use memfleet_ports::retriever::Retriever;
use memfleet_ports::turn_reader::TurnReader;
use tonic::service::{LayerExt, Routes};
use tonic::{Request, Response, Status};

use super::{Credential, MAX_MESSAGE_BYTES};
use crate::auth::AuthLayer;
use crate::convert::{Checked, accept, relay};
use crate::proto::internal::embedder_server::{self, EmbedderServer};
use crate::proto::internal::refresher_server::{self, RefresherServer};
use crate::proto::internal::retriever_server::{self, RetrieverServer};
use crate::proto::internal::turn_reader_server::{self, TurnReaderServer};
use crate::proto::internal::{
    EmbedRequest, EmbedResponse, EmbeddedRequest, NeedsRequest, NeedsResponse, Purpose,
    RelationsRequest, RelationsResponse, StatementsRequest, StatementsResponse,
};
use crate::server::{Bounds, Calls, Host};
use crate::{proto, status};

/// The roles that a process serves.
#[derive(Clone, Default)]
pub struct Roles {
    /// The embedder, if it does.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// The reader of turns, if it does.
    pub turn_reader: Option<Arc<dyn TurnReader>>,
    /// The retriever, if it does.
    pub retriever: Option<Arc<dyn Retriever>>,
    /// The refresher, if it does.
    pub refresher: Option<Arc<dyn Refresher>>,
}

/// The services of these roles, for callers with the fleet's credential. `bounds` and `host` as in [`crate::server::routes`].
pub fn routes(roles: Roles, credential: Credential, bounds: Bounds, host: Host) -> Routes {
    let calls = Calls {
        bounds: Bounds {
            max_request_bytes: MAX_MESSAGE_BYTES,
            max_response_bytes: MAX_MESSAGE_BYTES,
            ..bounds
        },
        due: host.due,
    };
    let layer = AuthLayer(credential, host.enter);
    let mut routes = Routes::default();
    if let Some(embedder) = roles.embedder {
        let service = EmbedderServer::new(Embedding { embedder });
        let service = service.max_decoding_message_size(MAX_MESSAGE_BYTES);
        routes = routes.add_service(layer.named_layer(service));
    }
    if let Some(reader) = roles.turn_reader {
        let service = TurnReaderServer::new(TurnReading { reader });
        let service = service.max_decoding_message_size(MAX_MESSAGE_BYTES);
        routes = routes.add_service(layer.named_layer(service));
    }
    if let Some(retriever) = roles.retriever {
        let service = RetrieverServer::new(Retrieving { retriever, calls });
        routes = routes.add_service(layer.named_layer(service));
    }
    if let Some(refresher) = roles.refresher {
        let service = RefresherServer::new(Refreshing { refresher, calls });
        routes = routes.add_service(layer.named_layer(service));
    }
    routes
}

struct Embedding {
    embedder: Arc<dyn Embedder>,
}

#[tonic::async_trait]
impl embedder_server::Embedder for Embedding {
    /// A caller that leaves takes its texts out of the queue.
    async fn embed(
        &self,
        request: Request<EmbedRequest>,
    ) -> Result<Response<EmbedResponse>, Status> {
        let answer = async {
            let question = relay(request.into_inner())?;
            if question.purpose == Purpose::Choice {
                let space = self.embedder.space_for(&question.texts).await?;
                let is_default = space == self.embedder.space().await?;
                return Ok(EmbedResponse {
                    is_default,
                    ..(space, Vec::new()).into()
                });
            }
            let space = match (&question.model, question.space) {
                (Some(model), _) => self.embedder.space_of(model).await?,
                (None, Some(space)) => space,
                (None, None) => self.embedder.space().await?,
            };
            let vectors = self.vectors(&space, question.texts, question.purpose);
            let vectors = vectors.await?;
            Ok(EmbedResponse::from((space, vectors)))
        };
        let answer = answer.await;
        let answer = answer.map_err(|fault: Fault| status::from_fault(&fault))?;
        Ok(Response::new(answer))
    }
}

impl Embedding {
    async fn vectors(
        &self,
        space: &EmbeddingSpace,
        texts: Vec<String>,
        purpose: Purpose,
    ) -> Result<Vec<PassageVectors>, Fault> {
        match purpose {
            _ if texts.is_empty() => Ok(Vec::new()),
            Purpose::Query => {
                let texts = texts.into_iter();
                try_join_all(texts.map(|text| self.embedder.embed_query_in(space, text))).await
            }
            _ => self.embedder.embed_passages_in(space, texts).await,
        }
    }
}

struct TurnReading {
    reader: Arc<dyn TurnReader>,
}

/// A caller that leaves takes its texts out of the queue.
#[tonic::async_trait]
impl turn_reader_server::TurnReader for TurnReading {
    async fn statements(
        &self,
        request: Request<StatementsRequest>,
    ) -> Result<Response<StatementsResponse>, Status> {
        answered(request, |turns| async move {
            Ok(self.reader.statements(turns).await?.into())
        })
        .await
    }

    async fn relations(
        &self,
        request: Request<RelationsRequest>,
    ) -> Result<Response<RelationsResponse>, Status> {
        answered(request, |pairs| async move {
            Ok(self.reader.relations(pairs).await?.into())
        })
        .await
    }

    async fn needs(
        &self,
        request: Request<NeedsRequest>,
    ) -> Result<Response<NeedsResponse>, Status> {
        answered(request, |question| async move {
            Ok(self.reader.needs(question).await?.into())
        })
        .await
    }
}

/// The answer to a request that keeps to its limits.
async fn answered<M: Checked, A, F: Future<Output = Result<A, Fault>>>(
    request: Request<M>,
    answer: impl FnOnce(M::Value) -> F,
) -> Result<Response<A>, Status> {
    let answer = match accept(request.into_inner()) {
        Ok(question) => answer(question).await,
        Err(fault) => Err(fault),
    };
    answer
        .map(Response::new)
        .map_err(|fault| status::from_fault(&fault))
}

struct Retrieving {
    retriever: Arc<dyn Retriever>,
    calls: Calls,
}

#[tonic::async_trait]
impl retriever_server::Retriever for Retrieving {
    async fn search(
        &self,
        request: Request<proto::RecallRequest>,
    ) -> Result<Response<proto::RecallResponse>, Status> {
        self.search_for(request).await
    }

    async fn search_embedded(
        &self,
        request: Request<EmbeddedRequest>,
    ) -> Result<Response<proto::RecallResponse>, Status> {
        self.search_for(request).await
    }
}

impl Retrieving {
    async fn search_for<M: Checked<Value = RecallRequest>>(
        &self,
        request: Request<M>,
    ) -> Result<Response<proto::RecallResponse>, Status> {
        let (context, request) = self.calls.relayed(request)?;
        let found = self.retriever.search(&context, &request.query);
        self.calls.answer(context.within("the search", found).await)
    }
}

struct Refreshing {
    refresher: Arc<dyn Refresher>,
    calls: Calls,
}

#[tonic::async_trait]
impl refresher_server::Refresher for Refreshing {
    async fn forget(
        &self,
        request: Request<proto::ForgetRequest>,
    ) -> Result<Response<proto::ForgetResponse>, Status> {
        let (context, request) = self.calls.relayed(request)?;
        let receipt = self.refresher.forget(&context, &request);
        self.calls
            .answer_forget(context.within("the forgetting", receipt).await)
    }
    async fn correct(
        &self,
        request: Request<proto::UpdateRequest>,
    ) -> Result<Response<proto::UpdateResponse>, Status> {
        let (context, request) = self.calls.relayed(request)?;
        let corrected = self.refresher.correct(&context, &request);
        self.calls
            .answer(context.within("the correction", corrected).await)
    }

    async fn identify(
        &self,
        request: Request<proto::internal::IdentifyRequest>,
    ) -> Result<Response<proto::internal::IdentifyResponse>, Status> {
        let (context, (space, namings)) = self.calls.relayed(request)?;
        let identified = self.refresher.identify(&context, &space, &namings);
        self.calls
            .answer(context.within("what is said of names", identified).await)
    }

    async fn restore(
        &self,
        request: Request<proto::internal::RestoreRequest>,
    ) -> Result<Response<proto::internal::RestoreResponse>, Status> {
        let (context, (space, memory)) = self.calls.relayed(request)?;
        let restored = self.refresher.restore(&context, &space, &memory);
        self.calls
            .answer(context.within("what callers decided", restored).await)
    }

    async fn revert(
        &self,
        request: Request<proto::RevertRequest>,
    ) -> Result<Response<proto::RevertResponse>, Status> {
        let (context, (space, change)) = self.calls.relayed(request)?;
        let reverted = self.refresher.revert(&context, &space, change);
        self.calls
            .answer(context.within("the revert", reverted).await)
    }
}
