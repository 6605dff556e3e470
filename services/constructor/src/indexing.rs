//! From what is in hand to what the ledger stores: passages, terms and vectors.

use std::collections::HashMap;

use memfleet_domain::Scope;
use memfleet_domain::embedding::{EmbeddingSpace, PassageVectors};
use memfleet_ports::ledger::{IndexedBatch, Passage};
use memfleet_ports::store::Result;
use memfleet_retrieval::document::Document;

use crate::Constructor;
use crate::following_language::SAMPLE;
use crate::passages::{Prepared, prepare};
use crate::task::Task;

/// Bytes of a batch's texts that are embedded before it is stored, some seconds of work; the vectors of its other turns follow
/// ([`crate::backfill`]). The embedder would keep the batches of all other tenants waiting for minutes.
const EMBEDDED_BYTES: usize = 256 << 10;

/// Vectors of the passages of some batches, in their order, by embedding space.
type Embedded = HashMap<EmbeddingSpace, std::vec::IntoIter<PassageVectors>>;

impl Constructor {
    /// Passages, terms and vectors of every turn in hand. Those of one embedding space are embedded
    /// together.
    pub(crate) async fn index(&self, tasks: &[Task]) -> Result<Vec<IndexedBatch>> {
        let languages = self.languages(tasks).await?;
        let tags = tasks
            .iter()
            .map(|task| languages[&task.batch.scope].clone())
            .collect::<Vec<_>>();
        let embeddings = self.embeddings(tasks).await?;
        let prepared = prepare(tasks.to_vec(), tags.clone()).await?;
        let mut texts: HashMap<EmbeddingSpace, Vec<String>> = HashMap::new();
        for (embedding, turns) in embeddings.iter().zip(&prepared) {
            if let Some(embedding) = embedding {
                let documents = turns[..embedded_first(turns)].iter().flatten();
                let texts = texts.entry(embedding.clone()).or_default();
                texts.extend(documents.map(|document| document.text.clone()));
            }
        }
        let embedded = self.vectors(texts).await;
        let read = tags.into_iter().zip(embeddings).collect();
        Ok(assemble(tasks, read, prepared, embedded))
    }

    /// The embedding space that each batch's vectors are made in: the one its space serves, or of
    /// a space without vectors that of the model which reads its texts. None where nobody can say.
    async fn embeddings(&self, tasks: &[Task]) -> Result<Vec<Option<EmbeddingSpace>>> {
        let mut texts: HashMap<&Scope, Vec<String>> = HashMap::new();
        for task in tasks {
            let texts = texts.entry(&task.batch.scope).or_default();
            let room = SAMPLE.saturating_sub(texts.len());
            let turns = task.batch.turns.iter().take(room);
            texts.extend(turns.map(|turn| turn.content.searchable_text()));
        }
        let mut known: HashMap<&Scope, Option<EmbeddingSpace>> = HashMap::new();
        for (scope, texts) in texts {
            known.insert(scope, self.embedding_for(scope, &texts).await?);
        }
        let scopes = tasks.iter().map(|task| &task.batch.scope);
        Ok(scopes.map(|scope| known[scope].clone()).collect())
    }

    /// The vectors, without those of embedders that are down: [`crate::backfill`] brings them
    /// later.
    async fn vectors(&self, texts: HashMap<EmbeddingSpace, Vec<String>>) -> Embedded {
        let mut embedded = Embedded::new();
        for (space, texts) in texts {
            match self.embedder.embed_passages_in(&space, texts).await {
                Ok(vectors) => _ = embedded.insert(space, vectors.into_iter()),
                Err(fault) => {
                    tracing::warn!(reason = %fault.reason, "turns are stored without vectors for now: {fault}");
                }
            }
        }
        embedded
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
    read: Vec<(Option<String>, Option<EmbeddingSpace>)>,
    prepared: Vec<Prepared>,
    mut embedded: Embedded,
) -> Vec<IndexedBatch> {
    let batches = tasks
        .iter()
        .zip(read)
        .zip(prepared)
        .map(|((task, (language, space)), turns)| {
            let mut vectors = space.as_ref().and_then(|space| embedded.get_mut(space));
            let mut passage = |document: Document, is_embedded: bool| Passage {
                vectors: vectors
                    .as_mut()
                    .filter(|_| is_embedded)
                    .and_then(std::iter::Iterator::next),
                ..document.passage
            };
            let first = embedded_first(&turns);
            let turns = turns.into_iter().enumerate().map(|(place, turn)| {
                let passages = turn.into_iter();
                passages
                    .map(|document| passage(document, place < first))
                    .collect()
            });
            let passages = turns.collect();
            IndexedBatch {
                batch: task.batch.clone(),
                acceptance: task.acceptance,
                embedding_space: space,
                language,
                passages,
            }
        });
    batches.collect()
}
