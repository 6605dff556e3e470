//! From what is in hand to what the ledger stores: passages, terms and vectors.

use memfleet_domain::Fault;
use memfleet_domain::embedding::{EmbeddingSpace, PassageVectors};
use memfleet_ports::ledger::{IndexedBatch, Passage};
use memfleet_ports::store::Result;
use memfleet_retrieval::document::Document;

use crate::Constructor;
use crate::passages::{Prepared, prepare};
use crate::task::Task;

/// Vectors, one a passage, and where they live.
type Embedded = (EmbeddingSpace, Vec<PassageVectors>);

impl Constructor {
    /// Passages, terms and vectors of every turn in hand, embedded together.
    pub(crate) async fn index(&self, tasks: &[Task]) -> Result<Vec<IndexedBatch>> {
        let languages = self.languages(tasks).await?;
        let tags = tasks
            .iter()
            .map(|task| languages[&task.batch.scope].clone())
            .collect::<Vec<_>>();
        let prepared = prepare(tasks.to_vec(), tags.clone()).await?;
        let texts = prepared
            .iter()
            .flatten()
            .flatten()
            .map(|document| document.text.clone())
            .collect::<Vec<_>>();
        let embedded = self.vectors(texts).await;
        Ok(assemble(tasks, tags, prepared, embedded))
    }

    /// The vectors and where they live, or none of them while the embedder is down: [`crate::backfill`] brings them later.
    async fn vectors(&self, texts: Vec<String>) -> Option<Embedded> {
        let embedded = async {
            let vectors = self.embedder.embed_passages(texts).await?;
            Ok::<_, Fault>((self.embedder.space().await?, vectors))
        };
        embedded
            .await
            .inspect_err(|fault| tracing::warn!(reason = %fault.reason, "turns are stored without vectors for now: {fault}"))
            .ok()
    }
}

fn assemble(
    tasks: &[Task],
    languages: Vec<Option<String>>,
    prepared: Vec<Prepared>,
    embedded: Option<Embedded>,
) -> Vec<IndexedBatch> {
    let (space, vectors) = embedded.unzip();
    let mut vectors = vectors.map(Vec::into_iter);
    let mut passage = |document: Document| Passage {
        vectors: vectors.as_mut().and_then(Iterator::next),
        ..document.passage
    };
    let batches = tasks
        .iter()
        .zip(languages)
        .zip(prepared)
        .map(|((task, language), turns)| IndexedBatch {
            batch: task.batch.clone(),
            acceptance: task.acceptance,
            embedding_space: space.clone(),
            language,
            passages: turns
                .into_iter()
                .map(|turn| turn.into_iter().map(&mut passage).collect())
                .collect(),
        });
    batches.collect()
}
