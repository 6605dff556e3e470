//! The embedder role behind the network.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use memfleet_domain::embedding::{EmbeddingSpace, PassageVectors, QueryVectors};
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::embedder::{Embedder, missing_model, no_model};

use super::call::{Repeat, Terms, call, within};
use super::credential::Credential;
use super::{MAX_MESSAGE_BYTES, Peers};
use crate::convert::understand;
use crate::proto::internal::embedder_client::EmbedderClient;
use crate::proto::internal::{EmbedRequest, EmbedResponse, Purpose};

/// Texts of one call: small enough that replicas share the passages of an import.
const TEXTS: usize = 128;

/// Longest wait for the vectors of passages: a queue before them may be long.
const PASSAGES: Duration = Duration::from_mins(1);

/// Longest wait for the vectors of a query; its search has a deadline of its own, which ends the call when it passes.
const QUERY: Duration = Duration::from_secs(10);

/// Asks the embedders of a fleet.
#[derive(Debug, Clone)]
pub struct RemoteEmbedder {
    peers: Peers,
    credential: Credential,
    /// As the first answer told it.
    space: Arc<OnceLock<EmbeddingSpace>>,
}

impl RemoteEmbedder {
    /// Asks `peers`; none needs to be there yet.
    pub fn new(peers: Peers, credential: Credential) -> Self {
        Self {
            peers,
            credential,
            space: Arc::default(),
        }
    }

    async fn embed(
        &self,
        texts: Vec<String>,
        purpose: Purpose,
        budget: Duration,
    ) -> Result<Vec<PassageVectors>, Fault> {
        let asked = texts.len();
        let (space, vectors) = self.call(texts, purpose, budget, None, "").await?;
        let known = self.space.get_or_init(|| space.clone());
        if space != *known {
            return Err(Fault::new(
                FaultKind::Unavailable,
                "EMBEDDING_SPACE_CHANGED",
                format!(
                    "the embedders have another model now: restart this role to use {space} instead of {known}"
                ),
            ));
        }
        complete(vectors, asked)
    }

    /// Like [`Self::embed`], in this embedding space. An embedder of a version before answers in
    /// its own.
    async fn embed_in(
        &self,
        space: &EmbeddingSpace,
        texts: Vec<String>,
        purpose: Purpose,
        budget: Duration,
    ) -> Result<Vec<PassageVectors>, Fault> {
        let asked = texts.len();
        let answer = self.call(texts, purpose, budget, Some(space), "");
        let (found, vectors) = answer.await?;
        if found != *space {
            return Err(no_model(space));
        }
        complete(vectors, asked)
    }

    async fn call(
        &self,
        texts: Vec<String>,
        purpose: Purpose,
        budget: Duration,
        space: Option<&EmbeddingSpace>,
        model: &str,
    ) -> Result<(EmbeddingSpace, Vec<PassageVectors>), Fault> {
        let message = EmbedRequest {
            texts,
            purpose: purpose.into(),
            embedding_space: space.cloned().map(Into::into),
            model: model.to_owned(),
        };
        embed(&self.peers, &self.credential, message, budget).await
    }
}

fn complete(vectors: Vec<PassageVectors>, asked: usize) -> Result<Vec<PassageVectors>, Fault> {
    if vectors.len() != asked {
        let message = format!("{} vectors came for {asked} texts", vectors.len());
        return Err(Fault::internal(message));
    }
    Ok(vectors)
}

async fn embed(
    peers: &Peers,
    credential: &Credential,
    message: EmbedRequest,
    budget: Duration,
) -> Result<(EmbeddingSpace, Vec<PassageVectors>), Fault> {
    understand(ask(peers, credential, message, budget).await?)
}

async fn ask(
    peers: &Peers,
    credential: &Credential,
    message: EmbedRequest,
    budget: Duration,
) -> Result<EmbedResponse, Fault> {
    let answer = call(
        peers.least_busy()?,
        Terms {
            credential,
            tenant: None,
            deadline: within(budget),
            repeat: Repeat::Freely,
        },
        message,
        |channel, request| {
            let client = EmbedderClient::new(channel);
            let mut client = client.max_decoding_message_size(MAX_MESSAGE_BYTES);
            async move { client.embed(request).await }.boxed()
        },
    );
    answer.await
}

#[async_trait]
impl Embedder for RemoteEmbedder {
    async fn space(&self) -> Result<EmbeddingSpace, Fault> {
        if self.space.get().is_none() {
            self.embed(Vec::new(), Purpose::Query, QUERY).await?;
        }
        Ok(self.space.get().expect("an answer told it").clone())
    }

    async fn embed_passages(&self, texts: Vec<String>) -> Result<Vec<PassageVectors>, Fault> {
        let parts = texts.chunks(TEXTS);
        let parts = parts.map(|part| self.embed(part.to_vec(), Purpose::Passage, PASSAGES));
        Ok(futures::future::try_join_all(parts).await?.concat())
    }

    async fn embed_query(&self, text: String) -> Result<QueryVectors, Fault> {
        let mut vectors = self.embed(vec![text], Purpose::Query, QUERY).await?;
        Ok(vectors.pop().expect("one vector came for one text"))
    }

    async fn embed_passages_in(
        &self,
        space: &EmbeddingSpace,
        texts: Vec<String>,
    ) -> Result<Vec<PassageVectors>, Fault> {
        let parts = texts.chunks(TEXTS);
        let parts =
            parts.map(|part| self.embed_in(space, part.to_vec(), Purpose::Passage, PASSAGES));
        Ok(futures::future::try_join_all(parts).await?.concat())
    }

    async fn embed_query_in(
        &self,
        space: &EmbeddingSpace,
        text: String,
    ) -> Result<QueryVectors, Fault> {
        let vectors = self.embed_in(space, vec![text], Purpose::Query, QUERY);
        Ok(vectors.await?.pop().expect("one vector came for one text"))
    }

    async fn space_for(&self, texts: &[String]) -> Result<EmbeddingSpace, Fault> {
        let texts = texts.iter().take(TEXTS).cloned().collect();
        let message = EmbedRequest {
            texts,
            purpose: Purpose::Choice.into(),
            embedding_space: None,
            model: String::new(),
        };
        match ask(&self.peers, &self.credential, message, QUERY).await {
            // The default model of a replica that was restarted may be another than is known.
            Ok(answer) if answer.is_default => self.space().await,
            Ok(answer) => Ok(understand::<EmbedResponse>(answer)?.0),
            // An embedder of a version before has one model.
            Err(fault) if fault.kind == FaultKind::InvalidArgument => self.space().await,
            Err(fault) => Err(fault),
        }
    }

    async fn space_of(&self, model: &str) -> Result<EmbeddingSpace, Fault> {
        let answer = self.call(Vec::new(), Purpose::Query, QUERY, None, model);
        let (space, _) = answer.await?;
        match space.model == model {
            true => Ok(space),
            false => Err(missing_model(model)),
        }
    }
}
