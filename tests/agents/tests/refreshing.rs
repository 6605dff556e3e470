//! AMA section 3.4, clause by clause: the refresher updates by default, deletes only where it is told to, and everything can be read and undone.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use memfleet_agents_together::{Memory, saying};
use memfleet_domain::derivation::{ChangeKind, Derivation};
use memfleet_domain::ids::DerivationId;
use memfleet_domain::time::AsOf;
use memfleet_ports::conformance::samples::{home, instant};
use memfleet_ports::context::Context;
use memfleet_ports::knowledge::{ChangeFilter, Knowledge, Question, Recorded};
use memfleet_ports::knowledge_api::{Correction, UpdateRequest};
use memfleet_ports::ledger::Ledger;
use memfleet_ports::refresher::{ForgetRequest, Refresher};

const DAY: i64 = 86_400;

fn call() -> Context {
    Context::new(home().tenant, Duration::from_mins(1))
}

const ROME: &str = "I live in Rome.";
const OSLO: &str = "I live in Oslo.";

/// A home, and another one later.
async fn moved() -> Memory {
    let memory = Memory::new().await;
    memory.say(1, ROME).await;
    memory.say(10, OSLO).await;
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

#[tokio::test]
async fn section_3_4_an_update_closes_the_old_interval_keeps_the_new_fact_and_links_them() {
    let memory = moved().await;
    let facts = all(&memory).await;
    let (old, new) = (saying(&facts, ROME), saying(&facts, OSLO));
    assert_eq!(old.valid.end, new.valid.start);
    assert_eq!(old.succeeded_by, Some(new.id));
    assert_eq!((new.valid.end, new.succeeded_by), (None, None));
    assert!(old.version > 1, "the old version stays what it was");
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
    let newer = saying(&facts, OSLO).turns[0];
    let mut request = ForgetRequest {
        space: home().space,
        filter: memfleet_ports::filter::TurnFilter::default(),
        everything: false,
        dry_run: false,
    };
    request.filter.turns = vec![newer];
    memory.refresher.forget(&call(), &request).await.unwrap();
    memory.settle().await;
    // What had closed the old interval is gone, so it is open again.
    assert_eq!(memory.known(20).await, [ROME]);
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
    assert_eq!(texts(None, Some(5)).await, [ROME]);
    assert_eq!(texts(None, Some(20)).await, [OSLO]);
    assert_eq!(texts(Some(5), Some(20)).await, [ROME]);
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
        saying(&facts, ROME).valid.end,
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

async fn correct(memory: &Memory, id: DerivationId, correction: Correction) -> Derivation {
    let request = UpdateRequest {
        space: home().space,
        id,
        version: None,
        correction,
    };
    let corrected = memory.refresher.correct(&call(), &request).await.unwrap();
    memory.settle().await;
    corrected
}

#[tokio::test]
async fn what_a_fact_had_ended_that_was_never_so_holds_again() {
    let memory = moved().await;
    let facts = all(&memory).await;
    correct(&memory, saying(&facts, OSLO).id, Correction::Withdrawn).await;
    assert_eq!(memory.known(13).await, [ROME]);
    let count = changes(&memory).await.len();
    memory.settle().await;
    assert_eq!(changes(&memory).await.len(), count, "once");
}

#[tokio::test]
async fn a_turn_that_is_replaced_had_ended_nothing() {
    let memory = Memory::new().await;
    memory.say(1, ROME).await;
    let told = memory.say(10, OSLO).await;
    memory
        .replace(11, &told, "I flew to Oslo for a weekend.")
        .await;
    let known = memory.known(12).await;
    assert!(known.contains(&ROME.to_owned()), "{known:?}");
}
