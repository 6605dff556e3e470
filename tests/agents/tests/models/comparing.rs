//! Contradictions of facts that a model found.

use memfleet_agents_together::Memory;
use memfleet_domain::derivation::Status;
use memfleet_domain::time::AsOf;
use memfleet_openai::testing::{Scripted, endpoint};
use memfleet_ports::knowledge::Stage;
use serde_json::{Value, json};

use crate::finding::fact;
use crate::{model, over, statuses};

/// Both facts are new, and each is known: whichever is named, it is the pair of them.
fn exclude(relation: &str, confidence: f32) -> Scripted {
    let pair = |new: &str, known: &str| json!({"new": new, "known": known, "relation": relation, "confidence": confidence});
    let conflicts = [
        pair("N1", "F1"),
        pair("N1", "F2"),
        pair("N2", "F1"),
        pair("N2", "F2"),
        pair("N9", "F1"),
        pair("*", "all"),
    ];
    Scripted::Says(json!({ "conflicts": conflicts }).to_string())
}

/// Words of turns, and the facts that a model finds in them.
const SAID: [(&str, &str, [&str; 3]); 5] = [
    ("I play chess", "Ada plays chess.", ["Ada", "play", "chess"]),
    (
        "I play tennis",
        "Ada plays tennis.",
        ["Ada", "play", "tennis"],
    ),
    (
        "I work at Acme",
        "Ada works at Acme.",
        ["Ada", "work at", "Acme"],
    ),
    ("I love sushi", "Ada loves sushi.", ["Ada", "love", "sushi"]),
    (
        "I do not eat sushi",
        "Ada does not eat sushi.",
        ["Ada", "eat", "sushi"],
    ),
];

/// Ada says two things on two days, and a model finds facts in them.
async fn said(before: &str, after: &str) -> Memory {
    let memory = Memory::without_reader().await;
    memory.say(1, before).await;
    memory.say(40, after).await;
    let exchange = endpoint(|_, body| {
        let shown = body.to_string();
        let said = SAID.iter().filter(|(words, ..)| shown.contains(words));
        let facts = said.map(|(words, sentence, parts)| {
            let mut fact = fact(words, sentence, *parts);
            fact["negated"] = json!(words.contains("not"));
            fact["correction"] = json!(shown.contains("Sorry"));
            fact
        });
        let facts: Vec<Value> = facts.collect();
        Scripted::Says(json!({ "facts": facts }).to_string())
    });
    memory.advise(Stage::Refine, over(&memory, exchange)).await;
    assert!(!memory.is_behind(Stage::Refine).await);
    memory
}

/// Two facts of one attribute.
const HOBBIES: [&str; 2] = ["I play chess.", "I play tennis."];

#[tokio::test]
async fn a_change_is_found_and_settled() {
    let memory = said(HOBBIES[0], HOBBIES[1]).await;
    assert_eq!(
        memory.known(50).await,
        ["Ada plays chess.", "Ada plays tennis."]
    );
    let model = model(&memory, exclude("change", 0.9));
    memory.advise(Stage::Compare, model.clone()).await;
    memory.settle().await;
    assert_eq!(memory.known(50).await, ["Ada plays tennis."]);
    assert_eq!(memory.known(20).await, ["Ada plays chess."]);
    assert_eq!(statuses(&memory).await, [Status::Settled]);
    assert!(memory.conflicts().await[0].judge.contains("conflicts.v1"));
    // Asked again it is the same conflict.
    memory.advise(Stage::Compare, model).await;
    memory.settle().await;
    assert_eq!(statuses(&memory).await, [Status::Settled]);
}

#[tokio::test]
async fn two_judges_at_once_and_one_that_was_cut_off_find_it_once() {
    let memory = said(HOBBIES[0], HOBBIES[1]).await;
    let model = model(&memory, exclude("change", 0.9));
    tokio::join!(
        memory.advise_anew(Stage::Compare, model.clone()),
        memory.advise_anew(Stage::Compare, model.clone()),
    );
    memory.settle().await;
    let (found, facts) = (
        memory.conflicts().await,
        memory.facts(AsOf::default()).await,
    );
    assert_eq!(found.len(), 1);
    memory.advise_anew(Stage::Compare, model).await;
    memory.settle().await;
    assert_eq!(memory.conflicts().await, found);
    assert_eq!(memory.facts(AsOf::default()).await, facts);
}

#[tokio::test]
async fn an_older_statement_does_not_correct_a_newer_one() {
    let memory = said(HOBBIES[0], HOBBIES[1]).await;
    let facts = memory.facts(AsOf::default()).await;
    let older = json!({"new": "N1", "known": "F1", "relation": "correction", "confidence": 1.0});
    let older = json!({ "conflicts": [older] }).to_string();
    memory
        .advise(Stage::Compare, model(&memory, Scripted::Says(older)))
        .await;
    memory.settle().await;
    assert_eq!(memory.facts(AsOf::default()).await, facts);
}

#[tokio::test]
async fn what_nothing_tells_is_left_for_a_person() {
    let memory = said(HOBBIES[0], HOBBIES[1]).await;
    memory
        .advise(
            Stage::Compare,
            model(&memory, exclude("contradiction", 0.9)),
        )
        .await;
    memory.settle().await;
    assert_eq!(memory.known(50).await.len(), 2);
    assert_eq!(statuses(&memory).await, [Status::Open]);
}

#[tokio::test]
async fn a_judge_that_doubts_or_compares_what_it_was_not_shown_finds_nothing() {
    let memory = said(HOBBIES[0], HOBBIES[1]).await;
    memory
        .advise(Stage::Compare, model(&memory, exclude("change", 0.4)))
        .await;
    assert_eq!(statuses(&memory).await, []);
    // One turn states both: they hold together.
    let memory = said("Hello.", "I play chess, and I play tennis.").await;
    memory
        .advise(Stage::Compare, model(&memory, exclude("change", 0.9)))
        .await;
    assert_eq!(statuses(&memory).await, []);
}

#[tokio::test]
async fn a_judge_that_is_down_is_asked_when_it_is_back() {
    let memory = said(HOBBIES[0], HOBBIES[1]).await;
    let down = Scripted::Status(503, "busy".into(), None);
    memory.advise(Stage::Compare, model(&memory, down)).await;
    assert!(memory.is_behind(Stage::Compare).await);
    assert_eq!(statuses(&memory).await, []);
    memory
        .advise(Stage::Compare, model(&memory, exclude("change", 0.9)))
        .await;
    assert_eq!(statuses(&memory).await, [Status::Found]);
}

#[tokio::test]
async fn facts_of_two_attributes_are_left_for_a_person() {
    for relation in ["change", "correction"] {
        let memory = said("I play chess.", "I work at Acme.").await;
        let facts = memory.facts(AsOf::default()).await;
        memory
            .advise(Stage::Compare, model(&memory, exclude(relation, 1.0)))
            .await;
        memory.settle().await;
        assert_eq!(memory.facts(AsOf::default()).await, facts, "{relation}");
        assert_eq!(statuses(&memory).await, [Status::Open], "{relation}");
    }
}

#[tokio::test]
async fn what_denies_the_value_of_another_attribute_closes_it() {
    let memory = said("I love sushi.", "I do not eat sushi.").await;
    memory
        .advise(Stage::Compare, model(&memory, exclude("change", 0.9)))
        .await;
    memory.settle().await;
    assert_eq!(statuses(&memory).await, [Status::Settled]);
    assert_eq!(memory.known(50).await, Vec::<String>::new());
}

/// Which of the facts were ever true, after a model said that the first never was.
async fn after_correction(before: &str, after: &str) -> (Vec<String>, Vec<String>) {
    let memory = said(before, after).await;
    memory
        .advise(Stage::Compare, model(&memory, exclude("correction", 1.0)))
        .await;
    memory.settle().await;
    (memory.known(20).await, memory.known(50).await)
}

#[tokio::test]
async fn only_what_takes_something_back_says_that_the_older_never_held() {
    let (before, after) = after_correction(HOBBIES[0], HOBBIES[1]).await;
    assert_eq!(
        (&*before[0], &*after[0]),
        ("Ada plays chess.", "Ada plays tennis.")
    );
    let (before, after) = after_correction(HOBBIES[0], "Sorry, I play tennis.").await;
    assert_eq!((before.len(), &*after[0]), (0, "Ada plays tennis."));
}
