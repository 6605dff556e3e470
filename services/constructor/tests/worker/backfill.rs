//! Vectors that were missing are brought later, whatever a single turn does to the model.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use memfleet_constructor::Postponed;
use memfleet_domain::embedding::{EmbeddingSpace, PassageVectors, QueryVectors};
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::conformance::knowledge::{deriving, fact};
use memfleet_ports::conformance::samples::instant;
use memfleet_ports::embedder::Embedder;
use memfleet_ports::knowledge::{Knowledge, Work};
use memfleet_ports::model_switch::{ModelSwitches, OrderGiver, SwitchGoal, SwitchOrder};
use memfleet_ports::spaces::SpaceCatalog;
use memfleet_ports::testing::WordEmbedder;
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, batch, batch_in, bench, scope, space};

/// A model that fails on some texts, and says no more than one that is down; counts its calls.
#[derive(Default)]
struct Picky(WordEmbedder, AtomicU32);

#[async_trait]
impl Embedder for Picky {
    async fn space(&self) -> Result<EmbeddingSpace, Fault> {
        self.0.space().await
    }

    async fn embed_passages(&self, texts: Vec<String>) -> Result<Vec<PassageVectors>, Fault> {
        self.1.fetch_add(1, Ordering::SeqCst);
        if texts.iter().any(|text| text.contains("poison")) {
            let message = "the embedding model failed";
            return Err(Fault::new(
                FaultKind::Unavailable,
                "EMBEDDER_UNAVAILABLE",
                message,
            ));
        }
        self.0.embed_passages(texts).await
    }

    async fn embed_query(&self, text: String) -> Result<QueryVectors, Fault> {
        self.0.embed_query(text).await
    }
}

/// These turns are stored without vectors, as one of them spoils the round.
async fn without_vectors(texts: &[String]) -> Bench {
    let mut bench = bench().await;
    bench.constructor.embedder = Arc::new(Picky::default());
    let texts = texts.iter().map(String::as_str).collect::<Vec<_>>();
    bench.publish(&batch(&texts)).await;
    bench.constructor.round().await.unwrap();
    assert!(!bench.vectors_in_feed().await.contains(&true));
    bench
}

#[tokio::test]
async fn a_turn_that_the_model_fails_on_is_left_alone_and_the_others_get_their_vectors() {
    let texts = ["poison", "one", "two"].map(str::to_owned);
    let bench = without_vectors(&texts).await;
    let mut postponed = Postponed::default();
    let brought = bench.constructor.backfill_once(&mut postponed).await;
    assert_eq!(brought.unwrap(), 2);
    let vectors = bench.vectors_in_feed().await;
    assert_eq!(vectors.iter().filter(|has| **has).count(), 2);
    // Nothing is tried before its time, so nothing fails.
    let brought = bench.constructor.backfill_once(&mut postponed).await;
    assert_eq!(brought.unwrap(), 0);
}

#[tokio::test]
async fn turns_that_wait_are_embedded_together() {
    let texts: Vec<_> = (0..30).map(|n| format!("number {n}")).collect();
    let mut bench = bench().await;
    bench.embedder.set_down(true);
    let texts = texts.iter().map(String::as_str).collect::<Vec<_>>();
    bench.publish(&batch(&texts)).await;
    bench.constructor.round().await.unwrap();
    let embedder = Arc::new(Picky::default());
    bench.constructor.embedder = embedder.clone();
    let mut postponed = Postponed::default();
    let brought = bench.constructor.backfill_once(&mut postponed).await;
    assert_eq!(brought.unwrap(), 30);
    let calls = embedder.1.load(Ordering::SeqCst);
    assert_eq!(calls, 1);
    assert!(!bench.vectors_in_feed().await.contains(&false));
}

#[tokio::test]
async fn more_failing_turns_than_are_looked_at_together_do_not_hide_the_rest() {
    let poison = (0..40).map(|n| format!("poison {n}"));
    let texts: Vec<_> = poison.chain(["sound".to_owned()]).collect();
    let bench = without_vectors(&texts).await;
    let mut postponed = Postponed::default();
    let mut rounds = 0;
    while !bench.vectors_in_feed().await.contains(&true) {
        // A round that brings nothing fails.
        let _fault = bench.constructor.backfill_once(&mut postponed).await;
        rounds += 1;
        assert!(rounds < 20, "the sound turn is reached");
    }
}

#[tokio::test]
async fn vectors_come_as_soon_as_the_embedder_is_back() {
    let bench = bench().await;
    bench.embedder.set_down(true);
    bench.publish(&batch(&["Stored all the same."])).await;
    bench.constructor.round().await.unwrap();
    let (constructor, stop) = (bench.constructor.clone(), CancellationToken::new());
    let stopped = stop.clone();
    let following = tokio::spawn(async move { constructor.run_backfill(stopped).await });
    // Long enough for a turn to be left alone for longer than what is allowed below.
    tokio::time::sleep(Duration::from_secs(3)).await;
    bench.embedder.set_down(false);
    let back = Instant::now();
    while bench.vectors_in_feed().await != [true] {
        assert!(back.elapsed() < Duration::from_secs(4), "no vectors yet");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    stop.cancel();
    following.await.unwrap();
}

/// More spaces than one round embeds, in a store that knows a second model.
#[tokio::test]
async fn spaces_without_vectors_take_those_of_the_model_that_reads_them() {
    let mut bench = bench().await;
    let embedder = Arc::new(WordEmbedder::default());
    embedder.pull_second();
    bench.constructor.embedder = embedder.clone();
    let order = SwitchOrder {
        target: embedder.second().clone(),
        goal: SwitchGoal::RollBack,
        drops: false,
        forced: false,
        every_language: false,
        giver: OrderGiver::Operator,
    };
    bench.store.set_order(&order).await.unwrap();
    embedder.set_down(true);
    let spaces: Vec<_> = (0..40).map(|n| space(&format!("space-{n}"))).collect();
    let text = |n: usize| {
        if n.is_multiple_of(2) {
            "one"
        } else {
            "один"
        }
    };
    for (n, scope) in spaces.iter().enumerate() {
        bench.publish(&batch_in(scope, &[text(n)])).await;
    }
    bench.constructor.round().await.unwrap();
    embedder.set_down(false);
    let mut postponed = Postponed::default();
    let mut brought = 0;
    while brought < spaces.len() {
        brought += bench
            .constructor
            .backfill_once(&mut postponed)
            .await
            .unwrap();
    }
    let models = [&embedder.space().await.unwrap(), embedder.second()];
    for (n, scope) in spaces.iter().enumerate() {
        let held = bench.store.embeddings(scope).await.unwrap();
        assert_eq!(held.served.as_ref(), Some(models[n % 2]), "{scope}");
    }
}

#[tokio::test]
async fn a_derivation_that_the_model_fails_on_is_left_alone_and_the_others_get_their_vectors() {
    let mut bench = bench().await;
    bench.constructor.embedder = Arc::new(Picky::default());
    let said = batch(&["Ada moved."]);
    bench.publish(&said).await;
    bench.constructor.round().await.unwrap();
    let values = ["poison", "Rome", "Oslo"];
    let facts = values.map(|value| fact(&said.turns[0], "Ada", value, instant(10)));
    let mut rewrite = deriving(&facts.each_ref());
    // Vectors of a model that the space has no place for are not stored.
    let other = Arc::new(WordEmbedder::default().second().clone());
    for revision in &mut rewrite.revisions {
        revision.passage.as_mut().unwrap().embedding_space = Some(other.clone());
    }
    let work = Work {
        rewrites: vec![rewrite],
        ..Work::default()
    };
    bench.store.apply(&scope(), work).await.unwrap();
    let mut postponed = Postponed::default();
    for brought in [2, 0] {
        let embedded = bench.constructor.backfill_once(&mut postponed).await;
        assert_eq!(embedded.unwrap(), brought);
    }
}
