//! The embedder: text to vectors for every other role. A bounded queue in front of two worker threads, one for queries, so
//! that they never wait behind passages, one for passages, which are cut into batches of similar length by a token budget.
//! Work whose caller left is dropped before it is computed. When the queue is full the answer is an immediate
//! `RESOURCE_EXHAUSTED`.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod batches;
mod choice;
mod legibility;
mod model;
pub mod names;
mod queue;
mod worker;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use memfleet_domain::embedding::{EmbeddingSpace, PassageVectors, QueryVectors};
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::embedder::Embedder;
use tokio::sync::oneshot;

pub use choice::ModelChoice;
pub use model::{Model, SentenceModel, TextKind};

use queue::{Lane, Queue, Request};

/// When a caller who was turned away may try again.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// The embedder in this process. Dropping it ends its workers.
pub struct LocalEmbedder {
    space: EmbeddingSpace,
    queue: Arc<Queue>,
}

impl LocalEmbedder {
    /// Starts the workers. At most `capacity` texts wait, except that one request is always taken by an empty queue.
    pub fn start(
        space: EmbeddingSpace,
        model: impl Model + 'static,
        capacity: usize,
    ) -> std::io::Result<Self> {
        let queue = Arc::new(Queue::new(capacity));
        let model = Arc::new(model);
        for lane in [Lane::Query, Lane::Passage] {
            let (work, model) = (queue.clone(), model.clone());
            std::thread::Builder::new()
                .name(format!("embed-{}", lane.label()))
                .spawn(move || worker::run(&work, lane, model.as_ref()))?;
        }
        Ok(Self { space, queue })
    }

    async fn embed(&self, texts: Vec<String>, lane: Lane) -> Result<Vec<PassageVectors>, Fault> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let (answer, answered) = oneshot::channel();
        let since = Instant::now();
        let request = Request {
            texts,
            since,
            answer,
        };
        if !self.queue.push(request, lane) {
            metrics::counter!(names::SHED, "lane" => lane.label()).increment(1);
            let message = "too many texts are waiting for the embedding model";
            return Err(
                Fault::new(FaultKind::ResourceExhausted, "EMBEDDER_OVERLOADED", message)
                    .retry_after(RETRY_AFTER),
            );
        }
        answered
            .await
            .unwrap_or_else(|_| Err(worker::unavailable("the embedding worker has stopped")))
    }
}

impl Drop for LocalEmbedder {
    fn drop(&mut self) {
        self.queue.close();
    }
}

#[async_trait]
impl Embedder for LocalEmbedder {
    async fn space(&self) -> Result<EmbeddingSpace, Fault> {
        Ok(self.space.clone())
    }

    async fn embed_passages(&self, texts: Vec<String>) -> Result<Vec<PassageVectors>, Fault> {
        self.embed(texts, Lane::Passage).await
    }

    async fn embed_query(&self, text: String) -> Result<QueryVectors, Fault> {
        let mut vectors = self.embed(vec![text], Lane::Query).await?;
        vectors
            .pop()
            .ok_or_else(|| Fault::internal("the model gave no vectors for a query"))
    }
}

#[cfg(test)]
mod tests;
