//! Explanations: every hit is among the candidates, and what is shown agrees with the answer.

use memfleet_domain::turn::AcceptedTurn;
use memfleet_ports::conformance::samples::turn_in;
use memfleet_ports::retriever::{Found, Hit, Query, SHOWN_BEHIND_HITS};
use memfleet_retrieval::{ModelCalibrations, Weights};
use memfleet_retriever::Options;

use crate::memory::{Memory, acme, options};
use crate::told::query;

async fn notes(count: usize) -> Memory {
    let memory = Memory::new().await;
    let scope = acme("ada");
    let said = |n: usize| {
        let words = format!("Note {n} about the bicycle and {} loaves of bread", n % 9);
        turn_in(&scope, "s1", &n.to_string(), &words)
    };
    let turns: Vec<AcceptedTurn> = (0..count).map(said).collect();
    for turns in turns.chunks(50) {
        memory.tell(&scope, turns).await;
    }
    memory
}

fn assert_agrees(found: &Found) {
    let explanation = found.explanation.as_ref().unwrap();
    let shown = &explanation.shown;
    for (hit, place) in found.hits.iter().zip(1..) {
        let id = hit.turn.accepted.id;
        let candidate = shown.iter().find(|it| it.turn == id).unwrap();
        assert_eq!((candidate.hit, candidate.rank), (Some(place), place));
        assert_eq!(candidate.score.to_bits(), hit.score.to_bits());
        assert_eq!(candidate.relevance, hit.relevance);
        assert_eq!(candidate.signals, hit.signals);
        assert_eq!(candidate.session, hit.turn.accepted.session);
    }
    assert!(shown.is_sorted_by(|one, next| one.rank < next.rank && one.score >= next.score));
    let behind = shown.iter().filter(|it| it.hit.is_none()).count();
    assert_eq!(shown.len(), found.hits.len() + behind);
    let most = explanation.candidates as usize - found.hits.len();
    assert_eq!(behind, most.min(SHOWN_BEHIND_HITS));
    assert!(shown.iter().all(|it| it.excerpt.starts_with("Note ")));
}

#[tokio::test]
async fn explanation_shows_the_hits_and_a_hundred_candidates_behind_them() {
    let memory = notes(130).await;
    for k in [1, 10, 40, 200] {
        let asked = Query {
            k,
            explain: true,
            ..query("the bicycle and 7 loaves", &["ada"])
        };
        let found = memory.search(&asked).await.unwrap();
        assert_agrees(&found);
        let explanation = found.explanation.as_ref().unwrap();
        assert!(explanation.is_exhaustive);
        assert_eq!(explanation.candidates, 130);
        let plain = Query {
            explain: false,
            ..asked
        };
        let plain = memory.search(&plain).await.unwrap();
        assert_eq!(plain.explanation, None);
        let turns = |hits: &[Hit]| -> Vec<_> { hits.iter().map(|it| it.turn.clone()).collect() };
        assert_eq!(turns(&plain.hits), turns(&found.hits));
    }
}

#[tokio::test]
async fn explanation_of_a_first_stage_names_the_sources_of_each_candidate() {
    let mut memory = notes(130).await;
    memory.set_options(Options {
        calibrations: ModelCalibrations::of_every_model(Weights {
            exhaustive: 20,
            candidates: 30,
            ..Weights::shipped()
        }),
        ..options()
    });
    let asked = Query {
        k: 5,
        explain: true,
        ..query("the bicycle and 7 loaves", &["ada"])
    };
    let found = memory.search(&asked).await.unwrap();
    assert_agrees(&found);
    let explanation = found.explanation.unwrap();
    assert!(!explanation.is_exhaustive);
    assert!((10..=30).contains(&explanation.candidates));
    for candidate in &explanation.shown {
        assert!(!candidate.sources.is_empty(), "{candidate:?}");
        let stages = candidate.stages.iter().map(|it| it.stage.as_ref());
        let stages: Vec<&str> = stages.collect();
        assert_eq!(stages, ["late_interaction", "first_round"]);
    }
}
