//! Text to vectors, as a service.

use async_trait::async_trait;
use memfleet_domain::embedding::{EmbeddingSpace, PassageVectors, QueryVectors};
use memfleet_domain::{Fault, FaultKind};

/// The embedder role.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// Where the vectors of its default model live; the same at every call. Fails only where that
    /// is not known yet, as the role was never reached.
    async fn space(&self) -> Result<EmbeddingSpace, Fault>;

    /// The vectors of [`Self::space`], one answer a text, in order. `RESOURCE_EXHAUSTED` when the
    /// queue is full.
    async fn embed_passages(&self, texts: Vec<String>) -> Result<Vec<PassageVectors>, Fault>;

    /// The vectors of a query in [`Self::space`]. Served before passages.
    async fn embed_query(&self, text: String) -> Result<QueryVectors, Fault>;

    /// Like [`Self::embed_passages`], by the model whose embedding space this is and by no other.
    /// `FAILED_PRECONDITION` where that model is not here.
    async fn embed_passages_in(
        &self,
        space: &EmbeddingSpace,
        texts: Vec<String>,
    ) -> Result<Vec<PassageVectors>, Fault> {
        if self.space().await? != *space {
            return Err(no_model(space));
        }
        self.embed_passages(texts).await
    }

    /// Like [`Self::embed_query`], by the model whose embedding space this is and by no other.
    /// `FAILED_PRECONDITION` where that model is not here.
    async fn embed_query_in(
        &self,
        space: &EmbeddingSpace,
        text: String,
    ) -> Result<QueryVectors, Fault> {
        if self.space().await? != *space {
            return Err(no_model(space));
        }
        self.embed_query(text).await
    }

    /// Where the vectors of a memory space should live that has these texts: in the embedding space
    /// of the default model, unless another model of the embedder reads their language better.
    async fn space_for(&self, _texts: &[String]) -> Result<EmbeddingSpace, Fault> {
        self.space().await
    }

    /// Where the vectors of a model live, by its name. `FAILED_PRECONDITION` where it is not here.
    async fn space_of(&self, model: &str) -> Result<EmbeddingSpace, Fault> {
        let space = self.space().await?;
        match space.model == model {
            true => Ok(space),
            false => Err(missing_model(model)),
        }
    }
}

/// Refusal of a text for an embedding space whose model is not here, or has other weights by now.
pub fn no_model(space: &EmbeddingSpace) -> Fault {
    let message = format!(
        "the embedder has no model for {space}: `memfleet model pull {}` brings it",
        space.model
    );
    Fault::new(FaultKind::FailedPrecondition, "MODEL_MISSING", message)
}

/// Refusal of a model that is not here.
pub fn missing_model(model: &str) -> Fault {
    let message =
        format!("the embedder has no model `{model}`: `memfleet model pull {model}` brings it");
    Fault::new(FaultKind::FailedPrecondition, "MODEL_MISSING", message)
}
