//! Text to vectors, as a service.

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_domain::embedding::{EmbeddingSpace, PassageVectors, QueryVectors};

/// The embedder role.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// Where its vectors live; the same at every call. Fails only where that is not known yet, as the role was never reached.
    async fn space(&self) -> Result<EmbeddingSpace, Fault>;

    /// One answer a text, in order. `RESOURCE_EXHAUSTED` when the queue is full.
    async fn embed_passages(&self, texts: Vec<String>) -> Result<Vec<PassageVectors>, Fault>;

    /// The vectors of a query. Served before passages.
    async fn embed_query(&self, text: String) -> Result<QueryVectors, Fault>;
}
