//! Settlements, looked at once more.

use std::time::Duration;

use memfleet_agents_together::{Memory, saying};
use memfleet_domain::derivation::{Derivation, Status};
use memfleet_domain::time::AsOf;
use memfleet_openai::testing::Scripted;
use memfleet_ports::conformance::samples::home;
use memfleet_ports::context::Context;
use memfleet_ports::knowledge::{ChangeFilter, Knowledge, Stage};
use memfleet_ports::refresher::Refresher;
use serde_json::json;

use crate::{model, statuses};

/// Two statements of which the older is over.
async fn moved() -> (Memory, Derivation) {
    moved_as("I live in Oslo.").await
}

async fn moved_as(newer: &str) -> (Memory, Derivation) {
    let memory = Memory::new().await;
    memory.say(1, "I live in Rome.").await;
    memory.say(40, newer).await;
    let facts = memory.facts_now().await;
    (memory, saying(&facts, "I live in Rome.").clone())
}

async fn reviewed(memory: &Memory, action: &str, since: Option<&str>) {
    let decision = |conflict: &str| json!({"conflict": conflict, "action": action, "since": since});
    let reply = json!({"decisions": [decision("X9"), decision("X1"), decision("*")]});
    let model = model(memory, Scripted::Says(reply.to_string()));
    memory.advise(Stage::Review, model).await;
    assert!(!memory.is_behind(Stage::Review).await);
    memory.settle().await;
}

async fn again(memory: &Memory, fact: &Derivation) -> Derivation {
    let facts = memory.store.versions(&home(), fact.id).await.unwrap();
    facts.last().unwrap().clone()
}

#[tokio::test]
async fn a_review_that_keeps_both_opens_what_was_closed() {
    let (memory, rome) = moved().await;
    assert!(rome.valid.end.is_some());
    reviewed(&memory, "keep_both", None).await;
    let opened = again(&memory, &rome).await;
    assert_eq!((opened.valid.end, opened.succeeded_by), (None, None));
    assert_eq!(opened.version, rome.version + 1);
    assert_eq!(statuses(&memory).await, [Status::Dismissed]);
    // And nobody closes it once more.
    memory.settle().await;
    reviewed(&memory, "update", None).await;
    assert_eq!(again(&memory, &rome).await, opened);
}

#[tokio::test]
async fn two_reviews_at_once_write_what_one_would() {
    let (memory, rome) = moved().await;
    let keep = json!({"decisions": [{"conflict": "X1", "action": "keep_both", "since": null}]});
    let model = model(&memory, Scripted::Says(keep.to_string()));
    tokio::join!(
        memory.advise_anew(Stage::Review, model.clone()),
        memory.advise_anew(Stage::Review, model.clone()),
    );
    let opened = again(&memory, &rome).await;
    assert_eq!(opened.version, rome.version + 1);
    memory.advise_anew(Stage::Review, model).await;
    assert_eq!(again(&memory, &rome).await, opened);
    // History lists it as what undid the settlement.
    let filter = ChangeFilter {
        ids: vec![rome.change],
        ..ChangeFilter::default()
    };
    let changes = memory
        .store
        .changes(&home(), &filter, 1, None)
        .await
        .unwrap();
    assert_eq!(changes.items[0].reverted_by, Some(opened.change));
}

#[tokio::test]
async fn a_review_says_since_when_the_newer_holds() {
    let (memory, rome) = moved_as("I live in Oslo. What a day it was, 4 December 2023!").await;
    reviewed(&memory, "update", Some("2023-12-04")).await;
    let since = Some("2023-12-04T00:00:00Z".parse().unwrap());
    let closed = again(&memory, &rome).await;
    assert_eq!(closed.valid.end, since);
    let facts = memory.facts(AsOf::default()).await;
    let newer = facts.iter().find(|fact| Some(fact.id) == rome.succeeded_by);
    assert_eq!(newer.unwrap().valid.start, since);
}

#[tokio::test]
async fn a_date_that_no_turn_tells_moves_nothing() {
    let (memory, rome) = moved_as("I live in Oslo. What a day it was, 4 December 2023!").await;
    reviewed(&memory, "update", Some("2023-12-05")).await;
    assert_eq!(again(&memory, &rome).await, rome);
}

#[tokio::test]
async fn a_review_says_that_the_older_never_held() {
    let (memory, rome) = moved_as("Sorry, I mixed that up. I live in Oslo.").await;
    assert!(!rome.is_withdrawn());
    reviewed(&memory, "correct", None).await;
    assert!(again(&memory, &rome).await.is_withdrawn());
    assert_eq!(memory.known(20).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_review_that_agrees_or_goes_beyond_the_turn_changes_nothing() {
    let (memory, rome) = moved().await;
    reviewed(&memory, "update", None).await;
    reviewed(&memory, "update", Some("2099-01-01")).await;
    reviewed(&memory, "delete", None).await;
    // Nobody said that it was never so.
    reviewed(&memory, "correct", None).await;
    assert_eq!(again(&memory, &rome).await, rome);
}

#[tokio::test]
async fn what_a_caller_undid_is_not_reviewed() {
    let (memory, rome) = moved().await;
    let call = Context::new(home().tenant, Duration::from_mins(1));
    let space = home().space;
    memory
        .refresher
        .revert(&call, &space, rome.change)
        .await
        .unwrap();
    let undone = again(&memory, &rome).await;
    reviewed(&memory, "correct", None).await;
    assert_eq!(again(&memory, &rome).await, undone);
}
