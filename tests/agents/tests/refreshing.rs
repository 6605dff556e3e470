//! AMA section 3.4, clause by clause: the refresher updates by default, deletes only where it is told to, and everything can be read and undone.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use memfleet_agents_together::Memory;
use memfleet_domain::derivation::{ChangeKind, Derivation};
use memfleet_domain::time::AsOf;
use memfleet_ports::conformance::samples::{home, instant};
use memfleet_ports::context::Context;
use memfleet_ports::knowledge::{ChangeFilter, Knowledge, Question, Recorded};
use memfleet_ports::ledger::Ledger;
use memfleet_ports::refresher::{ForgetRequest, Refresher};

const DAY: i64 = 86_400;

fn call() -> Context {
    Context::new(home().tenant, Duration::from_mins(1))
}

async fn moved() -> Memory {
    let memory = Memory::new().await;
    memory.say(1, "I live in Rome.").await;
    memory.say(10, "I moved to Oslo.").await;
    memory
}

/// Every fact as it is now, those that hold no longer among them.
async fn all(memory: &Memory) -> Vec<Derivation> {
    let question = Question {
        withdrawn: true,
        ..Question::default()
    };
    let page = memory
        .store
        .derivations(&home(), &question, 100, None)
        .await;
    page.unwrap().items
}

async fn changes(memory: &Memory) -> Vec<Recorded> {
    let filter = ChangeFilter::default();
    let page = memory.store.changes(&home(), &filter, 100, None).await;
    page.unwrap().items
}

fn of<'f>(facts: &'f [Derivation], value: &str) -> &'f Derivation {
    let is_it = |fact: &&Derivation| fact.fact().is_some_and(|draft| draft.claim.value == value);
    facts.iter().find(is_it).unwrap()
}

#[tokio::test]
async fn section_3_4_an_update_closes_the_old_interval_keeps_the_new_fact_and_links_them() {
    let memory = moved().await;
    let facts = all(&memory).await;
    let (rome, oslo) = (of(&facts, "rome"), of(&facts, "oslo"));
    assert_eq!(rome.valid.end, oslo.valid.start);
    assert_eq!(rome.succeeded_by, Some(oslo.id));
    assert_eq!((oslo.valid.end, oslo.succeeded_by), (None, None));
    assert!(rome.version > 1, "the old version stays what it was");
}

#[tokio::test]
async fn section_3_4_an_update_deletes_nothing() {
    let memory = moved().await;
    assert_eq!(all(&memory).await.len(), 2);
    let turns: Vec<_> = all(&memory)
        .await
        .iter()
        .map(|fact| fact.turns[0])
        .collect();
    assert_eq!(memory.store.turns(&home(), &turns).await.unwrap().len(), 2);
}

#[tokio::test]
async fn section_3_4_a_deletion_is_asked_for_and_takes_what_rests_on_it() {
    let memory = moved().await;
    let facts = all(&memory).await;
    let oslo = of(&facts, "oslo").turns[0];
    let mut request = ForgetRequest {
        space: home().space,
        filter: memfleet_ports::filter::TurnFilter::default(),
        everything: false,
        dry_run: false,
    };
    request.filter.turns = vec![oslo];
    memory.refresher.forget(&call(), &request).await.unwrap();
    memory.settle().await;
    // What had closed the old interval is gone, so it is open again.
    assert_eq!(memory.known(20).await, ["Ada lives in Rome."]);
}

#[tokio::test]
async fn section_3_4_both_axes_of_time_can_be_read() {
    let memory = moved().await;
    let texts = async |known_at: Option<i64>, happened_by: Option<i64>| {
        let as_of = AsOf {
            known_at: known_at.map(|day| instant(day * DAY)),
            happened_by: happened_by.map(|day| instant(day * DAY)),
        };
        let facts = memory.facts(as_of).await;
        let drafts = facts.iter().filter_map(Derivation::fact);
        drafts.map(|draft| draft.text.clone()).collect::<Vec<_>>()
    };
    assert_eq!(texts(None, Some(5)).await, ["Ada lives in Rome."]);
    assert_eq!(texts(None, Some(20)).await, ["Ada moved to Oslo."]);
    assert_eq!(texts(Some(5), Some(20)).await, ["Ada lives in Rome."]);
}

#[tokio::test]
async fn section_3_4_the_history_lists_an_update_and_a_revert_undoes_it() {
    let memory = moved().await;
    let changes = changes(&memory).await;
    let is_update = |recorded: &&Recorded| recorded.change.kind == ChangeKind::Updated;
    let update = changes.iter().find(is_update).unwrap().change.id;
    let space = home().space;
    memory
        .refresher
        .revert(&call(), &space, update)
        .await
        .unwrap();
    memory.settle().await;
    let facts = all(&memory).await;
    assert_eq!(
        of(&facts, "rome").valid.end,
        None,
        "and it is not done again"
    );
}

#[tokio::test]
async fn section_3_4_what_comes_twice_is_done_once() {
    let memory = moved().await;
    let (facts, count) = (all(&memory).await, changes(&memory).await.len());
    memory.settle().await;
    memory.settle().await;
    assert_eq!(all(&memory).await, facts);
    assert_eq!(changes(&memory).await.len(), count);
}
