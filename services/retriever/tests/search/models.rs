//! Spaces whose vectors are of another model than the configured one, or of two.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_domain::embedding::{EmbeddingSpace, PassageVectors, QueryVectors};
use memfleet_domain::ids::TenantId;
use memfleet_ports::context::Context;
use memfleet_ports::embedder::Embedder;
use memfleet_ports::retriever::{Found, Query, Retriever};
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

#[tokio::test]
async fn spaces_of_different_models_are_searched_by_words_alone() {
    let memory = Memory::new().await;
    memory.embedder.pull_second();
    memory.tell(&acme("a"), &turns(&acme("a"), 20)).await;
    let second = memory.embedder.second().clone();
    memory
        .tell_in(&second, &acme("b"), &turns(&acme("b"), 20))
        .await;
    let retriever = changed(&memory);
    for space in ["a", "b"] {
        let found = search(&retriever, &query("garden", &[space])).await;
        assert_eq!(found.degraded, Vec::<String>::new(), "{space}");
        assert!(found.hits.iter().all(|hit| hit.relevance.is_some()));
    }
    let found = search(&retriever, &query("garden", &["a", "b"])).await;
    assert_eq!(found.hits.len(), 40);
    assert!(found.hits.iter().all(|hit| hit.relevance.is_none()));
    assert!(
        found.degraded[0].contains("different models"),
        "{:?}",
        found.degraded
    );
}
