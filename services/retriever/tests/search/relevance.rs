//! How likely a hit bears on its query, and the vectors that a query brings along.

use std::sync::Arc;

use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_domain::space::Locale;
use memfleet_ports::conformance::samples::turn_in;
use memfleet_ports::retriever::{Embedded, Query};
use memfleet_retrieval::{Relevance, embedded_text};

use crate::memory::{Memory, acme, text};
use crate::told::query;

const WORDS: &str = "the violin in the cellar";

async fn memory() -> Memory {
    let memory = Memory::new().await;
    let scope = acme("ada");
    let said = [
        "The violin stands in the cellar",
        "It rained all day in Porto",
        "We had soup and bread",
        "The train was late again",
    ];
    let turns = said.map(|words| turn_in(&scope, "s1", words, words));
    memory.tell(&scope, &turns).await;
    memory
}

/// The query with its vectors, as a gateway brings them.
async fn embedded(memory: &Memory) -> Embedded {
    let text = embedded_text(WORDS, &Locale::default()).into_owned();
    Embedded::by(&*memory.embedder, text).await.unwrap()
}

fn bringing(embedded: Embedded) -> Query {
    Query {
        vectors: Some(Arc::new(embedded)),
        ..query(WORDS, &["ada"])
    }
}

#[tokio::test]
async fn the_turn_that_says_it_is_more_relevant_than_one_that_does_not() {
    let memory = memory().await;
    let found = memory.search(&query(WORDS, &["ada"])).await.unwrap();
    assert_eq!(found.scorer, Relevance::shipped().name);
    let relevance = |of: &str| {
        let hit = found.hits.iter().find(|hit| text(&hit.turn).contains(of));
        hit.unwrap().relevance.unwrap()
    };
    assert!(relevance("violin") > 2.0 * relevance("soup"));
    for hit in &found.hits {
        assert!((0.0..=1.0).contains(&hit.relevance.unwrap()));
    }
}

#[tokio::test]
async fn the_best_answer_to_what_was_never_spoken_of_is_less_relevant() {
    let memory = memory().await;
    let best = async |words: &str| {
        let found = memory.search(&query(words, &["ada"])).await.unwrap();
        found.hits[0].relevance.unwrap()
    };
    assert!(best(WORDS).await > 2.0 * best("quarterly revenue forecast").await);
}

#[tokio::test]
async fn an_explanation_tells_the_clues_and_still_adds_up_to_the_score() {
    let memory = memory().await;
    let explained = Query {
        explain: true,
        ..query(WORDS, &["ada"])
    };
    let found = memory.search(&explained).await.unwrap();
    let hit = &found.hits[0];
    let clue = hit.signals.iter().find(|it| it.signal == "clue_standing");
    assert!(clue.unwrap().value > 0.0);
    let sum: f32 = hit.signals.iter().map(|signal| signal.contribution).sum();
    assert!((sum - hit.score).abs() < 1e-4);
}

#[tokio::test]
async fn without_vectors_nothing_tells_relevance() {
    let memory = memory().await;
    memory.embedder.set_down(true);
    let found = memory.search(&query(WORDS, &["ada"])).await.unwrap();
    assert_eq!(found.scorer, "");
    assert!(found.hits.iter().all(|hit| hit.relevance.is_none()));
    assert!(!found.degraded.is_empty());
}

#[tokio::test]
async fn a_turn_that_is_not_embedded_yet_has_no_relevance() {
    let memory = memory().await;
    memory.embedder.set_down(true);
    let scope = acme("ada");
    let late = turn_in(&scope, "s2", "late", "A second violin stands in the attic");
    memory.tell(&scope, &[late]).await;
    memory.embedder.set_down(false);
    let found = memory.search(&query(WORDS, &["ada"])).await.unwrap();
    for hit in &found.hits {
        let is_late = text(&hit.turn).contains("attic");
        assert_eq!(hit.relevance.is_none(), is_late, "{hit:?}");
    }
}

#[tokio::test]
async fn a_query_that_brings_its_vectors_is_embedded_once_in_all() {
    let memory = memory().await;
    let told = memory.embedder.texts();
    let brought = bringing(embedded(&memory).await);
    let found = memory.search(&brought).await.unwrap();
    assert_eq!(memory.embedder.texts(), told + 1);
    assert_eq!(found, memory.search(&query(WORDS, &["ada"])).await.unwrap());
    assert_eq!(memory.embedder.texts(), told + 2);
}

#[tokio::test]
async fn vectors_of_another_text_or_another_space_are_not_used() {
    let memory = memory().await;
    let own = embedded(&memory).await;
    let plain = memory.search(&query(WORDS, &["ada"])).await.unwrap();
    let other = Embedded::by(&*memory.embedder, "soup and bread".to_owned()).await;
    let misleading = Embedded {
        text: "soup and bread".to_owned(),
        ..own.clone()
    };
    let foreign = Embedded {
        space: EmbeddingSpace {
            model: "another".to_owned(),
            ..own.space.clone()
        },
        ..own
    };
    for brought in [other.unwrap(), misleading, foreign] {
        let before = memory.embedder.texts();
        let found = memory.search(&bringing(brought)).await.unwrap();
        assert_eq!(memory.embedder.texts(), before + 1);
        assert_eq!(found, plain);
    }
}

#[tokio::test]
async fn vectors_that_are_brought_serve_while_the_embedder_is_away() {
    let memory = memory().await;
    let brought = bringing(embedded(&memory).await);
    memory.embedder.set_down(true);
    let found = memory.search(&brought).await.unwrap();
    assert!(found.degraded.is_empty(), "{:?}", found.degraded);
    assert!(found.hits[0].relevance.is_some());
}
