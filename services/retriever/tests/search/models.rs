//! Spaces whose vectors are of another model than the configured one, or of two.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_domain::embedding::{EmbeddingSpace, PassageVectors, QueryVectors};
use memfleet_domain::ids::TenantId;
use memfleet_domain::quality::SearchQuality;
use memfleet_ports::context::Context;
use memfleet_ports::embedder::Embedder;
use memfleet_ports::ledger::Ledger;
use memfleet_ports::model_switch::{ModelSwitches, SpaceComparison, SwitchOrder, SwitchStep};
use memfleet_ports::retriever::{Found, Hit, Query, Retriever};
use memfleet_ports::testing::WordEmbedder;
use memfleet_retriever::LocalRetriever;

use crate::caching::turns;
use crate::memory::{Memory, acme, options};
use crate::told::query;

/// A fleet whose configured model is now the second one, and whose first one reads ASCII alone.
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
        if space != self.0.second() && !text.is_ascii() {
            return Ok(QueryVectors::default());
        }
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

/// A space whose turns have vectors of two models, but for the last one, which lacks those of the
/// second.
async fn embedded_twice(turns_told: usize) -> Memory {
    let memory = Memory::new().await;
    memory.embedder.pull_second();
    let (scope, store) = (acme("a"), &memory.store);
    let mut turns = turns(&scope, turns_told);
    let last = turns.pop().unwrap();
    memory.tell(&scope, &turns).await;
    let second = memory.embedder.second().clone();
    let order = SwitchOrder::beside(second.clone());
    store.set_order(&order).await.unwrap();
    for step in [SwitchStep::Build, SwitchStep::Compare] {
        let steps = store.steps(Some(&order), 10).await.unwrap();
        assert_eq!(steps.iter().map(|it| it.step).collect::<Vec<_>>(), [step]);
        store
            .take(&steps[0], SpaceComparison::default())
            .await
            .unwrap();
        if step == SwitchStep::Build {
            memory.bring_vectors_in(&second).await;
            // The store notes that nothing lacks any when it is asked again.
            assert!(store.without_vectors(&second, 1).await.unwrap().is_empty());
        }
    }
    memory.tell(&scope, &[last]).await;
    memory
}

fn balanced() -> Query {
    Query {
        quality: Some(SearchQuality::Balanced),
        explain: true,
        ..query("garden", &["a"])
    }
}

#[tokio::test]
async fn a_balanced_search_adds_a_third_of_the_second_models_score() {
    let memory = embedded_twice(21).await;
    let fast = Query {
        quality: None,
        ..balanced()
    };
    let alone = memory.search(&fast).await.unwrap();
    let found = memory.search(&balanced()).await.unwrap();
    let missing = "second model: vectors: 1 turns are not embedded yet";
    assert_eq!(found.degraded, [missing]);
    assert_eq!(found.scorer, format!("fused-1({0},{0})", alone.scorer));
    assert_eq!((found.hits.len(), found.searched), (21, 21));
    assert!(found.hits.is_sorted_by(|a, b| a.score >= b.score));
    let (mut without, mut differ) = (0, 0);
    for hit in &found.hits {
        let same = |other: &&Hit| other.turn.accepted.id == hit.turn.accepted.id;
        let own = alone.hits.iter().find(same).unwrap();
        let told = hit.signals.iter().find(|it| it.signal == "second_model");
        if let Some(told) = told {
            let mean = (2.0 * own.score + told.value) / 3.0;
            assert!((hit.score - mean).abs() < 1e-4, "{} {mean}", hit.score);
            differ += usize::from((own.score - told.value).abs() > 1e-3);
        } else {
            without += 1;
            assert_eq!((hit.score, hit.relevance), (own.score, own.relevance));
        }
        let sum: f32 = hit.signals.iter().map(|it| it.contribution).sum();
        assert!((sum - hit.score).abs() < 1e-4, "{:?}", hit.signals);
    }
    assert_eq!(without, 1);
    assert!(differ > 0, "the two models judge alike");
    let shown = found.explanation.unwrap().shown;
    let ranks = shown.iter().flat_map(|it| &it.stages);
    let ranks = ranks
        .filter(|it| it.stage == "second_model")
        .map(|it| it.rank);
    assert_eq!(ranks.collect::<BTreeSet<_>>().len(), 21);
}

#[tokio::test]
async fn a_balanced_search_says_where_it_has_one_model_alone() {
    let memory = Memory::new().await;
    memory.tell(&acme("a"), &turns(&acme("a"), 3)).await;
    let found = memory.search(&balanced()).await.unwrap();
    assert_eq!(found.hits.len(), 3);
    let [degraded] = &found.degraded[..] else {
        panic!("{:?}", found.degraded);
    };
    assert!(
        degraded.starts_with("quality: these spaces have the vectors of one model"),
        "{degraded}"
    );
}

#[tokio::test]
async fn a_balanced_search_goes_on_without_the_second_model() {
    let mut memory = embedded_twice(21).await;
    memory.replace_embedder(WordEmbedder::default());
    let found = memory.search(&balanced()).await.unwrap();
    assert_eq!(found.hits.len(), 21);
    let said = |part: &str| found.degraded.iter().any(|it| it.contains(part));
    assert!(said("second model: embedder: "), "{:?}", found.degraded);
    assert!(
        found
            .hits
            .iter()
            .filter(|hit| hit.relevance.is_some())
            .count()
            >= 20
    );
}

/// A balanced search is the same however many hits it gives, and with an explanation or without.
#[tokio::test]
async fn balanced_hits_do_not_depend_on_how_many_are_asked_for() {
    let memory = embedded_twice(260).await;
    let asked = |k, explain| Query {
        k,
        explain,
        ..balanced()
    };
    let scores = async |query: Query| -> Vec<_> {
        let hits = memory.search(&query).await.unwrap().hits;
        hits.iter()
            .map(|hit| (hit.turn.accepted.id, hit.score.to_bits()))
            .collect()
    };
    let all = scores(asked(300, false)).await;
    assert_eq!(all.len(), 260);
    for (k, explain) in [(10, false), (10, true), (120, false), (300, true)] {
        let some = scores(asked(k, explain)).await;
        assert!(some == all[..some.len()], "{k} {explain}");
    }
}

/// Spaces that serve different models are ranked each by its own, not by the one that both have.
#[tokio::test]
async fn a_space_of_two_models_is_searched_by_the_one_it_serves_beside_a_space_of_the_other() {
    let memory = embedded_twice(21).await;
    let second = memory.embedder.second().clone();
    memory
        .tell_in(&second, &acme("b"), &turns(&acme("b"), 20))
        .await;
    let asked = |spaces: &[&str]| query("garden", spaces);
    let alone = memory.search(&asked(&["a"])).await.unwrap();
    let both = Query {
        k: 50,
        ..asked(&["a", "b"])
    };
    let found = memory.search(&both).await.unwrap();
    for own in &alone.hits {
        let same = |hit: &&Hit| hit.turn.accepted.id == own.turn.accepted.id;
        let hit = found.hits.iter().find(same).unwrap();
        assert_eq!(hit.relevance, own.relevance);
    }
    let all = memory
        .search(&Query {
            quality: Some(SearchQuality::Balanced),
            ..both
        })
        .await;
    assert_eq!(all.unwrap().hits.len(), 41);
}

/// An index is held by no search that waits for a model.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn balanced_searches_beside_writes_wait_for_nobody() {
    let memory = Arc::new(embedded_twice(60).await);
    let searching = (0..8).map(|_| {
        let memory = memory.clone();
        tokio::spawn(async move {
            for _ in 0..10 {
                memory.search(&balanced()).await.unwrap();
            }
        })
    });
    let searching: Vec<_> = searching.collect();
    for number in 0..20 {
        let scope = acme("a");
        let mut more = turns(&scope, 100 + number);
        memory.tell(&scope, &more.split_off(99 + number)).await;
        let second = memory.embedder.second().clone();
        memory.bring_vectors_in(&second).await;
    }
    for search in searching {
        let done = tokio::time::timeout(Duration::from_secs(30), search).await;
        done.expect("no search waits for another").unwrap();
    }
}

const UNREAD: &str =
    "query: sample does not read it, so that these spaces are searched by its words alone";

#[tokio::test]
async fn spaces_whose_model_does_not_read_the_query_stand_behind_others() {
    let memory = of_two_models().await;
    let retriever = changed(&memory);
    let asked = |spaces: &[&str]| Query {
        k: 50,
        ..query("\u{441}\u{430}\u{434}", spaces)
    };
    let alone = search(&retriever, &asked(&["a"])).await;
    assert_eq!(
        (&alone.degraded[..], &*alone.scorer),
        (&[UNREAD.to_owned()][..], "")
    );
    let found = search(&retriever, &asked(&["a", "b"])).await;
    assert_eq!(found.degraded, [UNREAD]);
    assert_ne!(found.scorer, "");
    let spaces: Vec<&str> = found.hits.iter().map(|hit| hit.space.as_str()).collect();
    let expected = [["b"; 20], ["a"; 20]].concat();
    assert_eq!(spaces, expected);
    assert!(found.hits.is_sorted_by(|a, b| a.score >= b.score));
}

#[tokio::test]
async fn a_balanced_search_reads_a_query_by_the_model_that_can() {
    let memory = embedded_twice(21).await;
    let asked = Query {
        quality: Some(SearchQuality::Balanced),
        ..query("\u{441}\u{430}\u{434}", &["a"])
    };
    let found = search(&changed(&memory), &asked).await;
    let missing = "second model: vectors: 1 turns are not embedded yet";
    assert_eq!(found.degraded, [missing]);
    assert!(!found.scorer.is_empty() && !found.scorer.starts_with("fused"));
    let known = found.hits.iter().filter(|hit| hit.relevance.is_some());
    assert!(known.count() >= 20);
}
