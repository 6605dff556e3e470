//! Settlements of statements, reviewed by a model.

use memfleet_agents_together::{Memory, saying};
use memfleet_domain::derivation::{Derivation, Status};
use memfleet_domain::time::TimeRange;
use memfleet_openai::testing::{Scripted, endpoint};
use memfleet_ports::conformance::samples::home;
use memfleet_ports::knowledge::{ChangeFilter, Knowledge, Stage};
use serde_json::json;

use super::{clause_of, shown};
use crate::finding::fact;
use crate::{model, over, statuses};

const ROME: &str = "I live in Rome.";
const OSLO: &str = "I live in Oslo now.";

/// Two statements of which the reader said that the older one is over.
async fn moved(newer: &str) -> Memory {
    let memory = Memory::new().await;
    memory.say(1, ROME).await;
    memory.say(40, newer).await;
    assert_eq!(statuses(&memory).await, [Status::Settled]);
    memory
}

async fn reviewed(memory: &Memory, action: &str, since: Option<&str>) {
    let decision = json!({"conflict": "X1", "action": action, "since": since});
    let reply = json!({ "decisions": [decision] }).to_string();
    let adviser = model(memory, Scripted::Says(reply));
    memory.advise(Stage::Review, adviser).await;
    assert!(!memory.is_behind(Stage::Review).await);
    memory.settle().await;
}

async fn rome(memory: &Memory) -> Derivation {
    let known = memory.facts_now().await;
    let id = saying(&known, ROME).id;
    let versions = memory.store.versions(&home(), id).await.unwrap();
    versions.last().unwrap().clone()
}

#[tokio::test]
async fn a_review_opens_a_statement_that_the_reader_ended() {
    let memory = moved(OSLO).await;
    let closed = rome(&memory).await;
    assert!(closed.valid.end.is_some());
    reviewed(&memory, "keep_both", None).await;
    let opened = rome(&memory).await;
    assert_eq!((opened.valid.end, opened.succeeded_by), (None, None));
    assert_eq!(statuses(&memory).await, [Status::Dismissed]);
    assert_eq!(memory.known(50).await, [ROME, OSLO]);
}

#[tokio::test]
async fn a_review_is_shown_the_words_of_both_with_their_speaker() {
    let memory = moved(OSLO).await;
    let exchange = endpoint(|_, body| {
        let conflict = shown(body, 'X').remove(0);
        for (side, text) in [("known", ROME), ("new", OSLO)] {
            let told = &conflict[side];
            assert_eq!(
                (&told["text"], &told["speaker"]),
                (&json!(text), &json!("ada"))
            );
        }
        Scripted::Says(json!({"decisions": []}).to_string())
    });
    let before = memory.facts_now().await;
    memory.advise(Stage::Review, over(&memory, exchange)).await;
    assert!(!memory.is_behind(Stage::Review).await);
    assert_eq!(memory.facts_now().await, before);
}

#[tokio::test]
async fn a_review_dates_a_statement_by_words_of_its_turn() {
    let memory = moved("I live in Oslo since 4 December 2023.").await;
    reviewed(&memory, "update", Some("2023-12-04")).await;
    let since = Some("2023-12-04T00:00:00Z".parse().unwrap());
    assert_eq!(rome(&memory).await.valid.end, since);
    let known = memory.facts_now().await;
    let oslo = saying(&known, "I live in Oslo since 4 December 2023.");
    let (start, end) = (since, None);
    assert_eq!(oslo.valid, TimeRange { start, end });
}

#[tokio::test]
async fn a_settlement_is_reviewed_though_the_statement_has_a_clause_since() {
    let memory = moved(OSLO).await;
    let closed = rome(&memory).await;
    let lives = fact(ROME, "Ada lives in Rome.", ["Ada", "live in", "Rome"]);
    let reply = json!({ "facts": [lives] }).to_string();
    let adviser = model(&memory, Scripted::Says(reply));
    memory.advise(Stage::Refine, adviser).await;
    let known = memory.facts_now().await;
    assert!(clause_of(&known, ROME).is_some());
    assert_eq!(rome(&memory).await.valid, closed.valid);
    reviewed(&memory, "keep_both", None).await;
    let opened = rome(&memory).await;
    assert_eq!(opened.valid.end, None);
    assert!(opened.fact().unwrap().clause.is_some());
    let filter = ChangeFilter {
        ids: vec![closed.change],
        ..ChangeFilter::default()
    };
    let changes = memory.store.changes(&home(), &filter, 1, None).await;
    let settlement = changes.unwrap().items.remove(0);
    assert_eq!(settlement.reverted_by, Some(opened.change));
}
