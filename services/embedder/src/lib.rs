//! The embedder: text to vectors for every other role, and the reader of turns beside it. A bounded
//! queue in front of two worker threads, one for queries, so that they never wait behind passages,
//! one for passages, which are cut into batches of similar length by a token budget. Work whose
//! caller left is dropped before it is computed. When the queue is full the answer is an immediate
//! `RESOURCE_EXHAUSTED`. The reader has such a queue of its own: one lane for needs, one for
//! statements and relations.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod batches;
mod choice;
mod embedding;
mod legibility;
mod line_vectors;
mod model;
pub mod names;
mod queue;
mod reading;
mod worker;

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_domain::embedding::{EmbeddingSpace, PassageVectors, QueryVectors};
use memfleet_ports::embedder::Embedder;

pub use choice::ModelChoice;
pub use model::{Model, SentenceModel, TextKind};
pub use reading::LocalTurnReader;

use embedding::QueuedEmbedding;
use queue::Lane;
use worker::Workers;

/// The embedder in this process. Dropping it ends its workers.
pub struct LocalEmbedder {
    space: EmbeddingSpace,
    workers: Workers<QueuedEmbedding>,
}

impl LocalEmbedder {
    /// Starts the workers. At most `capacity` texts wait, except that one request is always taken by an empty queue.
    pub fn start(
        space: EmbeddingSpace,
        model: impl Model + 'static,
        capacity: usize,
    ) -> std::io::Result<Self> {
        let workers = Workers::start(QueuedEmbedding(Box::new(model)), capacity)?;
        Ok(Self { space, workers })
    }

    async fn embed(&self, texts: Vec<String>, lane: Lane) -> Result<Vec<PassageVectors>, Fault> {
        let count = texts.len();
        match count {
            0 => Ok(Vec::new()),
            _ => self.workers.ask(texts, count, lane).await,
        }
    }
}

#[async_trait]
impl Embedder for LocalEmbedder {
    async fn space(&self) -> Result<EmbeddingSpace, Fault> {
        Ok(self.space.clone())
    }

    async fn embed_passages(&self, texts: Vec<String>) -> Result<Vec<PassageVectors>, Fault> {
        self.embed(texts, Lane::Background).await
    }

    async fn embed_query(&self, text: String) -> Result<QueryVectors, Fault> {
        let mut vectors = self.embed(vec![text], Lane::Call).await?;
        vectors
            .pop()
            .ok_or_else(|| Fault::internal("the model gave no vectors for a query"))
    }
}

#[cfg(test)]
mod tests;
