//! A change of the embedding model, carried on whatever a single space does to the model.

use std::sync::Arc;

use async_trait::async_trait;
use memfleet_constructor::{ModelSwitcher, Postponed, SwitchSchedule};
use memfleet_domain::embedding::{EmbeddingSpace, PassageVectors, QueryVectors};
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::embedder::Embedder;
use memfleet_ports::model_switch::{ModelSwitches, SwitchGoal, SwitchOrder, SwitchStep};
use memfleet_ports::testing::WordEmbedder;

use crate::bench::{Bench, batch_in, bench, space};

/// Two models that fail on some queries.
struct Choosy(WordEmbedder);

#[async_trait]
impl Embedder for Choosy {
    async fn space(&self) -> Result<EmbeddingSpace, Fault> {
        self.0.space().await
    }

    async fn embed_passages(&self, texts: Vec<String>) -> Result<Vec<PassageVectors>, Fault> {
        self.0.embed_passages(texts).await
    }

    async fn embed_query(&self, text: String) -> Result<QueryVectors, Fault> {
        self.0.embed_query(text).await
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
        if text.contains("poison") {
            let (reason, message) = ("EMBEDDER_UNAVAILABLE", "the embedding model failed");
            return Err(Fault::new(FaultKind::Unavailable, reason, message));
        }
        self.0.embed_query_in(space, text).await
    }
}

/// Two spaces, of which one has a text that the models fail on; all wait for their comparison.
async fn built() -> (Bench, ModelSwitcher, SwitchOrder) {
    let mut bench = bench().await;
    let embedder = WordEmbedder::default();
    embedder.pull_second();
    let order = SwitchOrder {
        target: embedder.second().clone(),
        goal: SwitchGoal::Serve,
        drops: false,
        forced: false,
    };
    bench.constructor.embedder = Arc::new(Choosy(embedder));
    for (name, text) in [("ada", "poison"), ("bob", "one")] {
        bench.publish(&batch_in(&space(name), &[text])).await;
        bench.constructor.round().await.unwrap();
    }
    bench.store.set_order(&order).await.unwrap();
    let switcher = ModelSwitcher {
        switches: bench.store.clone(),
        feed: bench.store.clone(),
        ledger: bench.store.clone(),
        spaces: bench.store.clone(),
        embedder: bench.constructor.embedder.clone(),
    };
    let built = switcher.round(&mut SwitchSchedule::default()).await;
    assert_eq!(built, Ok(Some(2)));
    let mut postponed = Postponed::default();
    while bench.constructor.backfill_once(&mut postponed).await != Ok(0) {}
    (bench, switcher, order)
}

#[tokio::test]
async fn a_space_whose_comparison_fails_waits_and_the_others_are_served() {
    let (bench, switcher, order) = built().await;
    let mut schedule = SwitchSchedule::default();
    // Compared, served, and nothing more.
    for taken in [1, 1, 0] {
        assert_eq!(switcher.round(&mut schedule).await, Ok(Some(taken)));
    }
    let progress = bench.store.progress(&order).await.unwrap();
    assert_eq!((progress.serving, progress.building), (1, 1));
    let left = bench.store.steps(&order, 10).await.unwrap();
    assert_eq!(left, [(space("ada"), SwitchStep::Compare)]);
}
