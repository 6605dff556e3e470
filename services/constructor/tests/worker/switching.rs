//! A change of the embedding model, carried on whatever a single space does to the model.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use memfleet_constructor::{ModelSwitcher, Postponed, SwitchSchedule};
use memfleet_domain::embedding::{EmbeddingSpace, PassageVectors, QueryVectors};
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::embedder::Embedder;
use memfleet_ports::model_switch::{
    ModelSwitches, OrderGiver, SwitchGoal, SwitchOrder, SwitchStep,
};
use memfleet_ports::spaces::SpaceCatalog;
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

fn switcher(bench: &Bench) -> ModelSwitcher {
    ModelSwitcher {
        switches: bench.store.clone(),
        feed: bench.store.clone(),
        ledger: bench.store.clone(),
        spaces: bench.store.clone(),
        embedder: bench.constructor.embedder.clone(),
        second_model: None,
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
        every_language: false,
        giver: OrderGiver::Operator,
    };
    bench.constructor.embedder = Arc::new(Choosy(embedder));
    for (name, text) in [("ada", "poison"), ("bob", "one")] {
        bench.publish(&batch_in(&space(name), &[text])).await;
        bench.constructor.round().await.unwrap();
    }
    bench.store.set_order(&order).await.unwrap();
    let switcher = switcher(&bench);
    let built = switcher.round(&mut SwitchSchedule::default()).await;
    assert_eq!(built, Ok(2));
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
        assert_eq!(switcher.round(&mut schedule).await, Ok(taken));
    }
    let progress = bench.store.progress(&order).await.unwrap();
    assert_eq!((progress.serving, progress.building), (1, 1));
    let left = bench.store.steps(Some(&order), 10).await.unwrap();
    let left: Vec<_> = left.into_iter().map(|it| (it.scope, it.step)).collect();
    assert_eq!(left, [(space("ada"), SwitchStep::Compare)]);
}

/// An operator's order that holds no space back.
async fn order_by_force(bench: &Bench, target: &EmbeddingSpace) {
    let order = SwitchOrder {
        target: target.clone(),
        goal: SwitchGoal::Serve,
        drops: false,
        forced: true,
        every_language: false,
        giver: OrderGiver::Operator,
    };
    bench.store.set_order(&order).await.unwrap();
}

/// A space that begins in one language and goes on in another moves to the model that reads it, and
/// no order of the operator brings it back.
#[tokio::test]
async fn a_space_moves_to_the_model_that_reads_its_new_language() {
    let mut bench = bench().await;
    let embedder = WordEmbedder::default();
    embedder.pull_second();
    let (default, second) = (embedder.space().await.unwrap(), embedder.second().clone());
    bench.constructor.embedder = Arc::new(embedder);
    let (ada, bob) = (space("ada"), space("bob"));
    for scope in [&ada, &bob] {
        bench
            .publish(&batch_in(scope, &["one", "two", "three"]))
            .await;
    }
    bench.constructor.round().await.unwrap();
    for scope in [&ada, &bob] {
        let held = bench.store.embeddings(scope).await.unwrap();
        assert_eq!(held.served.as_ref(), Some(&default));
    }
    bench.publish(&batch_in(&ada, &["четыре"])).await;
    bench.constructor.round().await.unwrap();
    // One text of another language among many of the first moves nothing.
    let english: Vec<String> = (0..20).map(|n| format!("word {n}")).collect();
    let english: Vec<&str> = english.iter().map(String::as_str).collect();
    bench.publish(&batch_in(&bob, &english)).await;
    bench.constructor.round().await.unwrap();
    bench.publish(&batch_in(&bob, &["пять"])).await;
    bench.publish(&batch_in(&ada, &["шесть"])).await;
    bench.constructor.round().await.unwrap();
    order_by_force(&bench, &default).await;
    let switcher = switcher(&bench);
    let mut postponed = Postponed::default();
    for _ in 0..8 {
        while bench.constructor.backfill_once(&mut postponed).await != Ok(0) {}
        let mut schedule = SwitchSchedule::default();
        switcher.round(&mut schedule).await.unwrap();
    }
    // The vectors of before stay for a while: searches may still use them.
    for (scope, model, other) in [(&ada, &second, Some(&default)), (&bob, &default, None)] {
        let held = bench.store.embeddings(scope).await.unwrap();
        let beside = held.other.map(|other| other.space);
        assert_eq!(
            (held.served.as_ref(), beside.as_ref()),
            (Some(model), other)
        );
    }
}

/// A space that began with the multilingual model keeps it when the operator wants another one.
#[tokio::test]
async fn an_order_leaves_spaces_alone_whose_language_another_model_reads() {
    let mut bench = bench().await;
    let embedder = WordEmbedder::default();
    embedder.pull_second();
    let (default, second) = (embedder.space().await.unwrap(), embedder.second().clone());
    bench.constructor.embedder = Arc::new(embedder);
    let ada = space("ada");
    bench.publish(&batch_in(&ada, &["один"])).await;
    bench.constructor.round().await.unwrap();
    order_by_force(&bench, &default).await;
    let switcher = switcher(&bench);
    for _ in 0..3 {
        let mut schedule = SwitchSchedule::default();
        switcher.round(&mut schedule).await.unwrap();
    }
    // Nor does one that begins now take the ordered model first.
    let bob = space("bob");
    bench.publish(&batch_in(&bob, &["два"])).await;
    bench.constructor.round().await.unwrap();
    for scope in [&ada, &bob] {
        let held = bench.store.embeddings(scope).await.unwrap();
        assert_eq!((held.served.as_ref(), held.other), (Some(&second), None));
    }
}

/// A configured second model is ordered unless the operator ordered something, and again once that
/// was given up.
#[tokio::test]
async fn a_second_model_is_ordered_where_no_operators_order_stands() {
    let mut bench = bench().await;
    let embedder = WordEmbedder::default();
    embedder.pull_second();
    let second = embedder.second().clone();
    bench.constructor.embedder = Arc::new(embedder);
    bench.publish(&batch_in(&space("ada"), &["one"])).await;
    bench.constructor.round().await.unwrap();
    let mut switcher = switcher(&bench);
    switcher.second_model = Some("unknown".to_owned());
    let mut schedule = SwitchSchedule::default();
    assert_eq!(switcher.round(&mut schedule).await, Ok(0));
    assert_eq!(bench.store.order().await.unwrap(), None);
    switcher.second_model = Some(second.model.clone());
    let beside = SwitchOrder::beside(second.clone());
    assert_eq!(switcher.round(&mut SwitchSchedule::default()).await, Ok(1));
    assert_eq!(bench.store.order().await.unwrap(), Some(beside.clone()));
    let held = bench.store.embeddings(&space("ada")).await.unwrap();
    assert_eq!(held.other.map(|it| it.space), Some(second.clone()));
    order_by_force(&bench, &second).await;
    let ordered = bench.store.order().await.unwrap();
    switcher
        .round(&mut SwitchSchedule::default())
        .await
        .unwrap();
    assert_eq!(bench.store.order().await.unwrap(), ordered);
    let given_up = SwitchOrder {
        goal: SwitchGoal::RollBack,
        drops: true,
        ..ordered.unwrap()
    };
    bench.store.set_order(&given_up).await.unwrap();
    let mut schedule = SwitchSchedule::default();
    switcher.round(&mut schedule).await.unwrap();
    assert_eq!(bench.store.order().await.unwrap(), Some(given_up));
    tokio::time::pause();
    tokio::time::advance(Duration::from_mins(3)).await;
    tokio::time::resume();
    while switcher.round(&mut schedule).await.unwrap() > 0 {}
    switcher
        .round(&mut SwitchSchedule::default())
        .await
        .unwrap();
    assert_eq!(bench.store.order().await.unwrap(), Some(beside));
}
