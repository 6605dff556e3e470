//! From what is in hand to what the ledger stores: passages, terms and vectors.

use memfleet_domain::Fault;
use memfleet_domain::embedding::{EmbeddingSpace, PassageVectors};
use memfleet_ports::ledger::{IndexedBatch, Passage};
use memfleet_ports::store::Result;
use memfleet_retrieval::document::Document;

use crate::Constructor;
use crate::passages::{Prepared, prepare};
use crate::task::Task;

/// Bytes of a batch's texts that are embedded before it is stored, some seconds of work; the vectors of its other turns follow
/// ([`crate::backfill`]). The embedder would keep the batches of all other tenants waiting for minutes.
const EMBEDDED_BYTES: usize = 256 << 10;

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
            .flat_map(|turns| &turns[..embedded_first(turns)])
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

/// Turns at the beginning of a batch whose vectors are stored with it.
fn embedded_first(turns: &[Vec<Document>]) -> usize {
    let mut bytes = 0;
    let fits = |turn: &&Vec<Document>| {
        bytes += turn
            .iter()
            .map(|document| document.text.len())
            .sum::<usize>();
        bytes <= EMBEDDED_BYTES
    };
    turns.iter().take_while(fits).count()
}

fn assemble(
    tasks: &[Task],
    languages: Vec<Option<String>>,
    prepared: Vec<Prepared>,
    embedded: Option<Embedded>,
) -> Vec<IndexedBatch> {
    let (space, vectors) = embedded.unzip();
    let mut vectors = vectors.map(Vec::into_iter);
    let mut passage = |document: Document, is_embedded: bool| Passage {
        vectors: vectors
            .as_mut()
            .filter(|_| is_embedded)
            .and_then(Iterator::next),
        ..document.passage
    };
    let batches = tasks
        .iter()
        .zip(languages)
        .zip(prepared)
        .map(|((task, language), turns)| {
            let first = embedded_first(&turns);
            let turns = turns.into_iter().enumerate().map(|(place, turn)| {
                let passages = turn.into_iter();
                passages
                    .map(|document| passage(document, place < first))
                    .collect()
            });
            IndexedBatch {
                batch: task.batch.clone(),
                acceptance: task.acceptance,
                embedding_space: space.clone(),
                language,
                passages: turns.collect(),
            }
        });
    batches.collect()
}
