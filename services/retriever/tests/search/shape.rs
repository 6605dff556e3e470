//! What an answer holds: how many hits, in which order, with what around them.

use memfleet_domain::turn::{AcceptedTurn, Media};
use memfleet_ports::conformance::samples::{session, turn_in};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::retriever::Query;

use memfleet_retriever::Options;

use crate::memory::{Memory, acme, options, text};
use crate::told::query;

/// Numbered turns in two sessions, of which one names the bicycle.
async fn bicycle() -> Memory {
    let memory = Memory::new().await;
    let scope = acme("ada");
    let turns = |name: &str| -> Vec<AcceptedTurn> {
        (0..7)
            .map(|n| {
                let words = match (name, n) {
                    ("monday", 3) => "My bicycle is red and stands at the station".to_owned(),
                    _ => format!("{name} {n}: nothing worth remembering"),
                };
                turn_in(&scope, name, &n.to_string(), &words)
            })
            .collect()
    };
    memory.tell(&scope, &turns("monday")).await;
    memory.tell(&scope, &turns("friday")).await;
    memory
}

#[tokio::test]
async fn the_best_hit_comes_first_and_there_are_at_most_k() {
    let memory = bicycle().await;
    for k in [1, 3, 14, 100] {
        let asked = Query {
            k,
            ..query("What colour is the bicycle at the station?", &["ada"])
        };
        let found = memory.search(&asked).await.unwrap();
        assert_eq!(found.hits.len(), (k as usize).min(14));
        assert!(text(&found.hits[0].turn).contains("red"));
        assert!(found.hits.is_sorted_by(|one, next| one.score >= next.score));
        assert_eq!(found.searched, 14);
        assert_eq!(found.degraded, [""; 0]);
    }
}

#[tokio::test]
async fn an_answer_that_would_be_too_large_is_refused_before_it_is_whole() {
    let mut memory = bicycle().await;
    let asked = |k, neighbours| Query {
        k,
        neighbours,
        ..query("red bicycle", &["ada"])
    };
    let all = memory.search(&asked(14, 0)).await.unwrap().hits;
    let bytes = all.iter().map(|hit| hit.turn.accepted.bytes()).sum();
    memory.set_options(Options {
        answer_bytes: bytes,
        ..options()
    });
    assert_eq!(memory.search(&asked(14, 0)).await.unwrap().hits.len(), 14);
    assert_eq!(memory.search(&asked(1, 2)).await.unwrap().hits.len(), 1);
    let fault = memory.search(&asked(14, 1)).await.unwrap_err();
    assert_eq!(fault.reason, "ANSWER_TOO_LARGE");
    assert_eq!(fault.fields[0].field, "k");
}

#[tokio::test]
async fn neighbours_are_the_turns_around_a_hit_in_its_session() {
    let memory = bicycle().await;
    for (reach, expected) in [
        (0, vec![]),
        (1, vec!["2", "4"]),
        (2, vec!["1", "2", "4", "5"]),
        (10, vec!["0", "1", "2", "4", "5", "6"]),
    ] {
        let asked = Query {
            k: 1,
            neighbours: reach,
            ..query("red bicycle", &["ada"])
        };
        let found = memory.search(&asked).await.unwrap();
        let around: Vec<_> = found.hits[0].neighbours.iter().collect();
        let numbers: Vec<_> = around
            .iter()
            .filter_map(|turn| turn.accepted.external_id.as_ref())
            .map(memfleet_domain::ids::ExternalId::as_str)
            .collect();
        assert_eq!(numbers, expected);
        let monday = session("monday");
        assert!(around.iter().all(|turn| turn.accepted.session == monday));
    }
}

#[tokio::test]
async fn the_score_is_explained_only_when_asked_for() {
    let memory = bicycle().await;
    let plain = query("red bicycle", &["ada"]);
    let found = memory.search(&plain).await.unwrap();
    assert!(found.hits.iter().all(|hit| hit.signals.is_empty()));
    let explained = Query {
        explain: true,
        ..plain
    };
    for hit in memory.search(&explained).await.unwrap().hits {
        let sum: f32 = hit.signals.iter().map(|signal| signal.contribution).sum();
        assert!((sum - hit.score).abs() < 1e-3, "{sum} is not {}", hit.score);
    }
}

#[tokio::test]
async fn the_passage_that_matched_is_a_part_of_a_long_turn_with_its_captions() {
    let memory = Memory::new().await;
    let scope = acme("ada");
    let mut long = turn_in(
        &scope,
        "s1",
        "a",
        &"We talked about the weather. ".repeat(60),
    );
    long.content.media.push(Media {
        uri: "file:a".into(),
        mime_type: String::new(),
        caption: "a lighthouse at dusk".into(),
    });
    let whole = long.content.searchable_text();
    let mut turns = vec![long];
    for n in 0..9 {
        let words = format!("On day {n} somebody said something else");
        turns.push(turn_in(&scope, "s1", &n.to_string(), &words));
    }
    memory.tell(&scope, &turns).await;
    let found = memory
        .search(&query("a lighthouse at dusk", &["ada"]))
        .await
        .unwrap();
    let mut hits = found.hits.iter();
    let long = hits.find(|hit| text(&hit.turn).starts_with("We talked"));
    let (start, end) = long.unwrap().passage;
    let passage = whole.get(start as usize..end as usize).unwrap();
    assert!(!passage.is_empty() && passage.len() < whole.len());
}

#[tokio::test]
async fn without_an_embedder_words_still_find_and_the_answer_says_what_was_missing() {
    let memory = Memory::new().await;
    let scope = acme("ada");
    memory.embedder.set_down(true);
    let turn = turn_in(&scope, "s1", "a", "The bicycle is red");
    memory.tell(&scope, &[turn]).await;
    let bicycle = query("bicycle", &["ada"]);
    let found = memory.search(&bicycle).await.unwrap();
    assert_eq!(found.hits.len(), 1);
    let [embedder, vectors] = found.degraded.as_slice() else {
        panic!("{:?}", found.degraded);
    };
    assert!(embedder.starts_with("embedder: "), "{embedder}");
    assert_eq!(vectors, "vectors: 1 turns are not embedded yet");
    memory.embedder.set_down(false);
    assert_eq!(memory.search(&bicycle).await.unwrap().degraded.len(), 1);
}

#[tokio::test]
async fn nothing_to_find_is_no_error() {
    let memory = bicycle().await;
    let asked = Query {
        filter: TurnFilter {
            sessions: vec![session("never")],
            ..TurnFilter::default()
        },
        ..query("bicycle", &["ada"])
    };
    let found = memory.search(&asked).await.unwrap();
    assert_eq!((found.hits.len(), found.searched), (0, 0));
}

#[tokio::test]
async fn without_the_embedder_words_are_found_also_in_turns_that_have_no_vectors_yet() {
    let memory = Memory::new().await;
    let scope = acme("ada");
    let told = |n: u32, words: &str| turn_in(&scope, "s1", &n.to_string(), words);
    let old: Vec<_> = (0..9)
        .map(|n| told(n, &format!("Line {n} about a dog and a passport.")))
        .collect();
    memory.tell(&scope, &old).await;
    memory.embedder.set_down(true);
    let new = told(9, "A xylophone without a vector.");
    memory.tell(&scope, &[new]).await;
    let asked = Query {
        explain: true,
        ..query("xylophone", &["ada"])
    };
    let found = memory.search(&asked).await.unwrap();
    let first = text(&found.hits[0].turn);
    assert!(first.contains("xylophone"), "{:#?}", found.hits);
}
