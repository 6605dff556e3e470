//! Possible changes that a model confirms.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use memfleet_agents_together::{Memory, saying};
use memfleet_domain::derivation::{Contradiction, Status};
use memfleet_openai::testing::{Scripted, endpoint};
use memfleet_ports::conformance::samples::instant;
use memfleet_ports::knowledge::Stage;
use memfleet_prompts::Adviser;
use serde_json::{Value, json};

use super::{DAY, correct, handle, shown};
use crate::{over, statuses};

const ROME: &str = "I live in Rome.";
const OSLO: &str = "Perhaps I live in Oslo.";

/// Rome, and later a statement that may have ended it.
async fn moved() -> Memory {
    let memory = Memory::new().await;
    memory.say(1, ROME).await;
    memory.say(10, OSLO).await;
    assert_eq!(statuses(&memory).await, [Status::Possible]);
    memory
}

/// A model that says this of a newer and an older statement, where it is shown both.
fn says(
    memory: &Memory,
    [newer, older]: [&'static str; 2],
    relation: &'static str,
    confidence: f32,
) -> Adviser {
    let exchange = endpoint(move |_, body| {
        let pair = handle(body, 'N', newer).zip(handle(body, 'F', older));
        let said = pair.map(|(newer, older)| json!({"new": newer, "known": older, "relation": relation, "confidence": confidence}));
        let said: Vec<Value> = said.into_iter().collect();
        Scripted::Says(json!({ "conflicts": said }).to_string())
    });
    over(memory, exchange)
}

async fn compare(memory: &Memory, adviser: Adviser) {
    memory.advise(Stage::Compare, adviser).await;
    assert!(!memory.is_behind(Stage::Compare).await);
    memory.settle().await;
}

#[tokio::test]
async fn a_confirmed_change_ends_the_older_statement() {
    let memory = moved().await;
    let possible = memory.conflicts().await.remove(0);
    let model = says(&memory, [OSLO, ROME], "change", 0.9);
    compare(&memory, model.clone()).await;
    assert_eq!(memory.known(20).await, [OSLO]);
    assert_eq!(memory.known(5).await, [ROME]);
    let facts_now = memory.facts_now().await;
    let rome = saying(&facts_now, ROME);
    assert_eq!(rome.valid.end, Some(instant(10 * DAY)));
    let settled = memory.conflicts().await.remove(0);
    assert_eq!((settled.id, settled.status), (possible.id, Status::Settled));
    assert_eq!(settled.contradiction, Contradiction::Functional);
    assert!(settled.judge.contains("conflicts.v1"), "{}", settled.judge);
    // Asked again it says nothing new.
    memory.rewind(Stage::Compare).await;
    compare(&memory, model).await;
    assert_eq!(memory.facts_now().await, facts_now);
    assert_eq!(memory.conflicts().await, [settled]);
}

#[tokio::test]
async fn a_change_that_is_not_named_or_doubted_stays_possible() {
    for (pair, confidence) in [([OSLO, ROME], 0.4), ([ROME, OSLO], 0.9)] {
        let memory = moved().await;
        let before = (memory.facts_now().await, memory.conflicts().await);
        let model = says(&memory, pair, "change", confidence);
        compare(&memory, model).await;
        let after = (memory.facts_now().await, memory.conflicts().await);
        assert_eq!(after, before);
    }
}

#[tokio::test]
async fn pairs_that_the_judge_did_not_note_are_no_changes() {
    let memory = Memory::new().await;
    let (tom, tim) = ("My cat is Tom.", "Perhaps my cat is Tim.");
    memory.say_in(1, 1, ROME).await;
    memory.say_in(1, 2, tom).await;
    memory.say_in(1, 10, OSLO).await;
    memory.say_in(1, 11, tim).await;
    assert_eq!(statuses(&memory).await, [Status::Possible; 2]);
    for pair in [[OSLO, tom], [tim, ROME]] {
        memory.rewind(Stage::Compare).await;
        compare(&memory, says(&memory, pair, "change", 1.0)).await;
        assert_eq!(statuses(&memory).await, [Status::Possible; 2]);
    }
    memory.rewind(Stage::Compare).await;
    compare(&memory, says(&memory, [tim, tom], "change", 1.0)).await;
    assert_eq!(memory.known(20).await, [ROME, OSLO, tim]);
}

#[tokio::test]
async fn a_statement_that_was_true_is_not_denied_by_a_model() {
    let memory = moved().await;
    compare(&memory, says(&memory, [OSLO, ROME], "correction", 1.0)).await;
    assert_eq!(memory.known(5).await, [ROME]);
    assert_eq!(memory.known(20).await, [OSLO]);
}

#[tokio::test]
async fn a_contradiction_that_nothing_decides_is_left_for_a_person() {
    let memory = moved().await;
    compare(&memory, says(&memory, [OSLO, ROME], "contradiction", 1.0)).await;
    assert_eq!(statuses(&memory).await, [Status::Open]);
    assert_eq!(memory.known(20).await, [ROME, OSLO]);
}

#[tokio::test]
async fn a_correction_by_a_caller_stays_and_the_conflict_is_open() {
    let memory = Memory::new().await;
    memory.say(1, "I live in Turin.").await;
    let turin = memory.facts_now().await.remove(0);
    let corrected = correct(&memory, &turin, ROME).await;
    memory.say(10, OSLO).await;
    assert_eq!(statuses(&memory).await, [Status::Possible]);
    compare(&memory, says(&memory, [OSLO, ROME], "change", 1.0)).await;
    assert_eq!(*saying(&memory.facts_now().await, ROME), corrected);
    assert_eq!(statuses(&memory).await, [Status::Open]);
}

#[tokio::test]
async fn a_change_that_is_noted_later_is_asked_about() {
    let memory = Memory::new().await;
    memory.say(1, ROME).await;
    memory.say_alone(10, OSLO).await;
    memory.derive_alone().await;
    let model = says(&memory, [OSLO, ROME], "change", 0.9);
    memory.advise(Stage::Compare, model.clone()).await;
    assert!(memory.is_behind(Stage::Compare).await);
    assert_eq!(statuses(&memory).await, []);
    memory.settle().await;
    compare(&memory, model).await;
    assert_eq!(memory.known(20).await, [OSLO]);
}

#[tokio::test]
async fn the_model_is_shown_who_said_what_and_when() {
    let memory = moved().await;
    let exchange = endpoint(|_, body| {
        for (letter, text, day) in [('F', ROME, 1), ('N', OSLO, 10)] {
            let lines = shown(body, letter);
            let line = lines.iter().find(|line| line["text"] == text).unwrap();
            let from = json!(instant(day * DAY));
            assert_eq!((&line["speaker"], &line["from"]), (&json!("ada"), &from));
        }
        Scripted::Says(json!({"conflicts": []}).to_string())
    });
    compare(&memory, over(&memory, exchange)).await;
}

#[tokio::test]
async fn a_call_shows_sixteen_pairs_at_most() {
    let memory = Memory::new().await;
    let state = |start: &str, end: &str| {
        let sentences = (0..8).map(|number| format!("{start} letter{number} is {end}."));
        sentences.collect::<Vec<_>>().join(" ")
    };
    for end in ["red", "blue", "green"] {
        memory.say_in(1, 1, &state("My", end)).await;
    }
    memory.say_in(1, 10, &state("Perhaps my", "grey")).await;
    assert_eq!(statuses(&memory).await, [Status::Possible; 24]);
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let exchange = endpoint(move |_, body| {
        count.fetch_add(1, Ordering::SeqCst);
        let (news, knowns) = (shown(body, 'N'), shown(body, 'F'));
        assert!(news.len() <= 16 && knowns.len() <= 16, "{}", knowns.len());
        let pairs = news.iter().flat_map(|new| {
            knowns.iter().map(move |known| json!({"new": new["id"], "known": known["id"], "relation": "change", "confidence": 1.0}))
        });
        Scripted::Says(json!({"conflicts": pairs.collect::<Vec<_>>()}).to_string())
    });
    compare(&memory, over(&memory, exchange)).await;
    assert!(calls.load(Ordering::SeqCst) >= 2);
    assert_eq!(statuses(&memory).await, [Status::Settled; 24]);
    assert_eq!(memory.known(20).await.len(), 8);
}
