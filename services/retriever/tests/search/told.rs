//! Turns as the constructor stores them, and queries, for retrievers over any store.

use memfleet_domain::Scope;
use memfleet_domain::ids::SpaceId;
use memfleet_domain::turn::AcceptedTurn;
use memfleet_language::{Analyzer, Language};
use memfleet_ports::conformance::samples::batch_in;
use memfleet_ports::embedder::Embedder;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::ledger::{IndexedBatch, Passage};
use memfleet_ports::retriever::Query;
use memfleet_ports::testing::WordEmbedder;
use memfleet_retrieval::document::documents;

/// A batch that was accepted at this place, with vectors unless the embedder is down.
pub async fn indexed(
    embedder: &WordEmbedder,
    acceptance: u64,
    scope: &Scope,
    turns: &[AcceptedTurn],
) -> IndexedBatch {
    let mut indexed = Vec::new();
    for turn in turns {
        indexed.push(passages(embedder, turn).await);
    }
    IndexedBatch {
        batch: batch_in(scope, &acceptance.to_string(), turns.to_vec()),
        acceptance,
        passages: indexed,
        embedding_space: embedder.space().await.ok(),
        language: None,
    }
}

/// The passages of a turn.
pub async fn passages(embedder: &WordEmbedder, turn: &AcceptedTurn) -> Vec<Passage> {
    let text = turn.content.searchable_text();
    let analyzer = Analyzer::new(Language::English);
    let documents = documents(turn.speaker.as_str(), &text, &analyzer);
    let texts = documents.iter().map(|document| document.text.clone());
    let vectors = embedder.embed_passages(texts.collect()).await.ok();
    let mut vectors = vectors.map(Vec::into_iter);
    documents
        .into_iter()
        .map(|document| Passage {
            vectors: vectors.as_mut().and_then(Iterator::next),
            ..document.passage
        })
        .collect()
}

/// A query of spaces without any condition.
pub fn query(text: &str, spaces: &[&str]) -> Query {
    let spaces = spaces.iter().map(|space| SpaceId::new(*space).unwrap());
    Query {
        text: text.to_owned(),
        spaces: spaces.collect(),
        filter: TurnFilter::default(),
        k: 100,
        neighbours: 0,
        now: None,
        session: None,
        intent: None,
        explain: false,
        quality: None,
        vectors: None,
    }
}
