//! Searches whose candidates come from the database find what searches of an index in memory find, on a real server.
#![allow(clippy::unwrap_used, reason = "tests")]

mod memory;

#[path = "../search/told.rs"]
mod told;

#[path = "../../../../crates/adapters/postgres/tests/postgres/database.rs"]
#[expect(dead_code, reason = "the adapter's own tests ask for more of it")]
mod database;

use std::collections::HashMap;

use memfleet_domain::Scope;
use memfleet_domain::ids::TurnId;
use memfleet_domain::time::{AsOf, TimeRange};
use memfleet_domain::turn::{AcceptedTurn, Role};
use memfleet_ports::conformance::samples::{instant, scope, session, speaker, turn_in};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::retriever::{Found, Query};

use crate::memory::{Kind, Memory};
use crate::told::query;

const WORDS: [&str; 24] = [
    "garden", "violin", "cellar", "train", "porto", "letter", "winter", "bread", "river", "lamp",
    "summer", "clock", "window", "market", "doctor", "guitar", "holiday", "mountain", "kitchen",
    "bicycle", "painting", "harbour", "orchard", "piano",
];

fn ada() -> Scope {
    scope("acme", "ada")
}

/// Numbers that look like chance.
fn mixed(number: usize, salt: usize) -> usize {
    let mixed = (number * 31 + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed >> 40
}

fn told(scope: &Scope, number: usize) -> AcceptedTurn {
    let word = |salt| WORDS[mixed(number, salt) % WORDS.len()];
    let text = format!(
        "The {} of the {} was {} and {} {number}. I saw the {} yesterday?",
        word(1),
        word(2),
        word(3),
        word(4),
        word(5)
    );
    // Some have several passages.
    let text = text.repeat(if number.is_multiple_of(17) { 12 } else { 1 });
    AcceptedTurn {
        speaker: speaker(["Ada", "Ben", "Cleo"][mixed(number, 6) % 3]),
        role: [Role::User, Role::Assistant][number % 2],
        event_time: (!number.is_multiple_of(5)).then(|| instant(number as i64 * 3_600)),
        recorded_at: instant(number as i64 * 3_600 + 60),
        metadata: [("n".to_owned(), (number % 7).to_string())].into(),
        ..turn_in(
            scope,
            &format!("s{}", mixed(number, 8) % 30),
            &number.to_string(),
            &text,
        )
    }
}

/// With turns that were replaced, some that were forgotten, and one without vectors.
async fn fill(memory: &Memory, scope: &Scope, turns: usize) {
    let all: Vec<_> = (0..turns).map(|number| told(scope, number)).collect();
    for turns in all.chunks(50) {
        memory.tell(scope, turns).await;
    }
    let edits = (0..turns / 40).map(|n| AcceptedTurn {
        replaces: Some(all[n * 40 + 3].id),
        recorded_at: instant(900 * 3_600),
        ..turn_in(
            scope,
            all[n * 40 + 3].session.as_str(),
            &format!("edit {n}"),
            "A lamp in winter",
        )
    });
    memory.tell(scope, &edits.collect::<Vec<_>>()).await;
    let gone = TurnFilter {
        turns: all.iter().step_by(11).map(|turn| turn.id).collect(),
        ..TurnFilter::default()
    };
    memory.forget(scope, &gone).await;
}

fn filters(scope: &Scope) -> Vec<TurnFilter> {
    let none = TurnFilter::default;
    let time = |start: i64, end: i64| TimeRange {
        start: Some(instant(start * 3_600)),
        end: Some(instant(end * 3_600)),
    };
    vec![
        none(),
        TurnFilter {
            include_replaced: true,
            ..none()
        },
        TurnFilter {
            speakers: vec![speaker("Ben")],
            ..none()
        },
        TurnFilter {
            sessions: vec![session("s3"), session("s4")],
            ..none()
        },
        TurnFilter {
            excluded_sessions: vec![session("s5")],
            roles: vec![Role::User],
            ..none()
        },
        TurnFilter {
            time: time(50, 150),
            ..none()
        },
        TurnFilter {
            metadata: vec![("n".to_owned(), "3".to_owned())],
            ..none()
        },
        TurnFilter {
            turns: (0..40).map(|n| told(scope, n).id).collect(),
            ..none()
        },
        TurnFilter {
            as_of: AsOf {
                known_at: Some(instant(120 * 3_600)),
                happened_by: Some(instant(100 * 3_600)),
            },
            ..none()
        },
    ]
}

const QUESTIONS: [&str; 4] = [
    "When did Ada see the garden in winter?",
    "the painting of the harbour yesterday",
    "summary of the bread and the violin",
    "nothing of this",
];

/// The same turns with the same scores, as far as the last place is not shared.
fn assert_same(ours: &Found, theirs: &Found, what: &str) {
    assert_eq!(ours.searched, theirs.searched, "{what}");
    assert_eq!(ours.degraded, theirs.degraded, "{what}");
    assert_eq!(ours.hits.len(), theirs.hits.len(), "{what}");
    let scores: HashMap<TurnId, f32> = theirs
        .hits
        .iter()
        .map(|hit| (hit.turn.accepted.id, hit.score))
        .collect();
    let candidates = |found: &Found| {
        let explanation = found.explanation.as_ref()?;
        Some((
            explanation.candidates,
            explanation.is_exhaustive,
            explanation.shown.len(),
        ))
    };
    assert_eq!(candidates(ours), candidates(theirs), "{what}");
    let last = theirs.hits.last().map_or(0.0, |hit| hit.score);
    for (hit, other) in ours.hits.iter().zip(&theirs.hits) {
        assert!(
            (hit.score - other.score).abs() < 2e-3,
            "{what}: {} {}",
            hit.score,
            other.score
        );
        let same = scores.get(&hit.turn.accepted.id).copied().unwrap_or(last);
        assert!((hit.score - same).abs() < 2e-3, "{what}: {hit:?} {same}");
    }
}

async fn compare(memory: &Memory, queries: impl IntoIterator<Item = Query>) {
    let held = memory.retriever(Kind::Held);
    let outlined = memory.retriever(Kind::Outlined);
    for query in queries {
        let ours = memory.search(&outlined, &query).await.unwrap();
        let theirs = memory.search(&held, &query).await.unwrap();
        assert_same(&ours, &theirs, &format!("{query:?}"));
    }
    assert_eq!(
        memory.builds(),
        memory.spaces(),
        "the outlines read no feed"
    );
}

#[tokio::test]
async fn every_turn_of_a_small_search_scores_the_same() {
    let memory = Memory::new().await;
    fill(&memory, &ada(), 300).await;
    let queries = filters(&ada()).into_iter().flat_map(|filter| {
        QUESTIONS.map(|text| Query {
            filter: filter.clone(),
            neighbours: 2,
            explain: true,
            ..query(text, &["ada"])
        })
    });
    compare(&memory, queries).await;
}

#[tokio::test]
async fn a_first_stage_in_the_database_chooses_the_same_candidates() {
    let memory = Memory::new().await;
    fill(&memory, &ada(), 1_600).await;
    let queries = filters(&ada()).into_iter().take(5).map(|filter| Query {
        filter,
        ..query(QUESTIONS[0], &["ada"])
    });
    compare(&memory, queries).await;
}

#[tokio::test]
async fn several_spaces_are_ranked_as_one() {
    let memory = Memory::new().await;
    for (space, turns) in [("ada", 200), ("team", 60), ("bob", 30)] {
        fill(&memory, &scope("acme", space), turns).await;
    }
    let queries = QUESTIONS.map(|text| query(text, &["ada", "team", "bob"]));
    compare(&memory, queries).await;
}

#[tokio::test]
async fn without_the_embedder_words_rank_alike() {
    let memory = Memory::new().await;
    fill(&memory, &ada(), 300).await;
    memory.embedder.set_down(true);
    memory
        .tell(
            &ada(),
            &[turn_in(&ada(), "late", "late", "A garden without vectors")],
        )
        .await;
    compare(&memory, [query(QUESTIONS[0], &["ada"])]).await;
    memory.embedder.set_down(false);
    compare_again(&memory).await;
}

/// The turn that has no vectors yet is told of.
async fn compare_again(memory: &Memory) {
    let outlined = memory.retriever(Kind::Outlined);
    let found = memory
        .search(&outlined, &query("garden", &["ada"]))
        .await
        .unwrap();
    assert_eq!(found.degraded, ["vectors: 1 turns are not embedded yet"]);
}

#[tokio::test]
async fn a_search_by_outline_sees_every_change_that_was_committed_before_it() {
    let memory = Memory::new().await;
    let outlined = memory.retriever(Kind::Outlined);
    let garden = query("garden", &["ada"]);
    let turns: Vec<_> = (0..9)
        .map(|n| {
            turn_in(
                &ada(),
                "s",
                &n.to_string(),
                &format!("Letter {n} about the garden"),
            )
        })
        .collect();
    for (number, turn) in turns.iter().enumerate() {
        memory.tell(&ada(), std::slice::from_ref(turn)).await;
        let found = memory.search(&outlined, &garden).await.unwrap();
        assert_eq!(found.hits.len(), number + 1);
    }
    let gone = TurnFilter {
        turns: vec![turns[4].id],
        ..TurnFilter::default()
    };
    memory.forget(&ada(), &gone).await;
    let found = memory.search(&outlined, &garden).await.unwrap();
    assert_eq!(found.hits.len(), 8);
    let everything = TurnFilter::default();
    memory.forget(&ada(), &everything).await;
    assert!(
        memory.search(&outlined, &garden).await.is_err(),
        "the space is gone"
    );
    memory.tell(&ada(), &turns[4..5]).await;
    let found = memory.search(&outlined, &garden).await.unwrap();
    assert_eq!(found.hits.len(), 1);
}

#[tokio::test]
async fn a_cold_space_is_searched_by_its_outline_until_its_index_is_built() {
    let memory = Memory::new().await;
    fill(&memory, &ada(), 200).await;
    let (gate, cold) = memory.gated();
    let asked = query(QUESTIONS[0], &["ada"]);
    let first = memory.search(&cold, &asked).await.unwrap();
    assert_eq!(gate.asked_whole(), 0, "nothing of the index was there yet");
    gate.open();
    let outlines = gate.outlines();
    // A search that needs no more of the outline is one of the index.
    let built = async {
        loop {
            let before = gate.looked_up();
            let again = memory.search(&cold, &asked).await.unwrap();
            assert_same(&again, &first, "index and outline");
            if gate.looked_up() == before {
                break;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), built)
        .await
        .unwrap();
    assert_eq!(gate.outlines(), outlines);
}

#[tokio::test]
async fn a_tenant_finds_nothing_of_another() {
    let memory = Memory::new().await;
    fill(&memory, &ada(), 60).await;
    let theirs = scope("globex", "ada");
    let secret = turn_in(&theirs, "s", "a", "The garden code is 4711");
    memory.tell(&theirs, std::slice::from_ref(&secret)).await;
    let outlined = memory.retriever(Kind::Outlined);
    let guessed = Query {
        filter: TurnFilter {
            turns: vec![secret.id],
            ..TurnFilter::default()
        },
        ..query("garden code 4711", &["ada"])
    };
    let found = memory.search(&outlined, &guessed).await.unwrap();
    assert_eq!(found.hits.len(), 0);
    let all = memory
        .search(&outlined, &query("garden code 4711", &["ada"]))
        .await
        .unwrap();
    assert!(all.hits.iter().all(|hit| hit.turn.accepted.id != secret.id));
}
