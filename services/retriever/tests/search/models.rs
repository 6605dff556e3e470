//! Spaces whose vectors are of another model than the configured one, or of two.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_domain::embedding::{EmbeddingSpace, PassageVectors, QueryVectors};
use memfleet_domain::ids::TenantId;
use memfleet_ports::context::Context;
use memfleet_ports::embedder::Embedder;
use memfleet_ports::retriever::{Found, Hit, Query, Retriever};
use memfleet_ports::testing::WordEmbedder;
use memfleet_retriever::LocalRetriever;

use crate::caching::turns;
use crate::memory::{Memory, acme, options};
use crate::told::query;

/// A fleet whose configured model is now the second one.
struct Changed(Arc<WordEmbedder>);

#[async_trait]
impl Embedder for Changed {
    async fn space(&self) -> Result<EmbeddingSpace, Fault> {
        Ok(self.0.second().clone())
    }

    async fn embed_passages(&self, texts: Vec<String>) -> Result<Vec<PassageVectors>, Fault> {
        self.0.embed_passages_in(self.0.second(), texts).await
    }

    async fn embed_query(&self, text: String) -> Result<QueryVectors, Fault> {
        self.0.embed_query_in(self.0.second(), text).await
    }

    async fn embed_passages_in(
        &self,
        space: &EmbeddingSpace,
        texts: Vec<String>,
    ) -> Result<Vec<PassageVectors>, Fault> {
        self.0.embed_passages_in(space, texts).await
    }

    async fn embed_query_in(
        &self,
        space: &EmbeddingSpace,
        text: String,
    ) -> Result<QueryVectors, Fault> {
        self.0.embed_query_in(space, text).await
    }
}

fn changed(memory: &Memory) -> LocalRetriever {
    let store = memory.store.clone();
    LocalRetriever::new(
        store.clone(),
        None,
        store.clone(),
        store,
        Arc::new(Changed(memory.embedder.clone())),
        options(),
    )
}

async fn search(retriever: &LocalRetriever, query: &Query) -> Found {
    let context = Context::new(TenantId::new("acme").unwrap(), Duration::from_mins(1));
    retriever.search(&context, query).await.unwrap()
}

#[tokio::test]
async fn a_changed_model_is_not_compared_with_what_a_space_has() {
    let memory = Memory::new().await;
    memory.embedder.pull_second();
    memory.tell(&acme("a"), &turns(&acme("a"), 50)).await;
    let asked = query("garden", &["a"]);
    let before = memory.search(&asked).await.unwrap();
    let after = search(&changed(&memory), &asked).await;
    // By the space's own model, to the last score.
    assert_eq!(after.degraded, Vec::<String>::new());
    let scores = |found: &Found| {
        let hits = found
            .hits
            .iter()
            .map(|hit| (hit.turn.accepted.id, hit.score));
        hits.collect::<Vec<_>>()
    };
    assert_eq!(scores(&after), scores(&before));
}

#[tokio::test]
async fn a_space_whose_model_is_not_here_is_found_by_its_words() {
    let mut memory = Memory::new().await;
    memory.tell(&acme("a"), &turns(&acme("a"), 50)).await;
    memory.embedder = Arc::new(WordEmbedder::of_second());
    let found = search(&changed(&memory), &query("garden", &["a"])).await;
    assert_eq!(found.hits.len(), 50);
    assert!(found.hits.iter().all(|hit| hit.relevance.is_none()));
    let [degraded] = &found.degraded[..] else {
        panic!("{:?}", found.degraded);
    };
    assert!(
        degraded.contains("memfleet model pull sample"),
        "{degraded}"
    );
}

/// A space with vectors of each of two models.
async fn of_two_models() -> Memory {
    let memory = Memory::new().await;
    memory.embedder.pull_second();
    memory.tell(&acme("a"), &turns(&acme("a"), 20)).await;
    let second = memory.embedder.second().clone();
    memory
        .tell_in(&second, &acme("b"), &turns(&acme("b"), 20))
        .await;
    memory
}

#[tokio::test]
async fn spaces_of_different_models_are_ranked_together_by_relevance() {
    let memory = of_two_models().await;
    let retriever = changed(&memory);
    let mut alone = Vec::new();
    for space in ["a", "b"] {
        let found = search(&retriever, &query("garden", &[space])).await;
        assert_eq!(found.degraded, Vec::<String>::new(), "{space}");
        alone.extend(found.hits);
    }
    let asked = Query {
        k: 30,
        explain: true,
        ..query("garden", &["a", "b"])
    };
    let found = search(&retriever, &asked).await;
    assert_eq!(found.degraded, Vec::<String>::new());
    assert_eq!((found.hits.len(), found.searched), (30, 40));
    let relevance = |hit: &Hit| hit.relevance.unwrap();
    assert!(found.hits.is_sorted_by(|a, b| relevance(a) >= relevance(b)));
    for hit in &found.hits {
        assert!(hit.score.to_bits() == relevance(hit).to_bits());
        let same = |other: &&Hit| {
            other.turn.accepted.id == hit.turn.accepted.id && other.space == hit.space
        };
        let alone = alone.iter().find(same).unwrap();
        assert_eq!(hit.relevance, alone.relevance);
    }
    let explanation = found.explanation.unwrap();
    assert_eq!((explanation.candidates, explanation.shown.len()), (40, 40));
    let ranks: Vec<u32> = explanation.shown.iter().map(|it| it.rank).collect();
    assert_eq!(ranks, (1..=40).collect::<Vec<_>>());
    let hits = explanation.shown.iter().filter(|it| it.hit.is_some());
    assert_eq!(hits.count(), 30);
}

#[tokio::test]
async fn spaces_whose_models_are_not_all_here_take_turns() {
    let mut memory = of_two_models().await;
    memory.embedder = Arc::new(WordEmbedder::of_second());
    let found = search(&changed(&memory), &query("garden", &["a", "b"])).await;
    assert_eq!(found.hits.len(), 40);
    let spaces: Vec<&str> = found.hits.iter().map(|hit| hit.space.as_str()).collect();
    assert!(
        spaces.chunks(2).all(|pair| pair[0] != pair[1]),
        "{spaces:?}"
    );
    assert!(found.hits.is_sorted_by(|a, b| a.score >= b.score));
    assert_eq!((found.degraded.len(), &*found.scorer), (1, ""));
}
