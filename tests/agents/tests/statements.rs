//! Facts as statements in their own words: what is derived, and what a later statement ends.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use memfleet_agents::conflicts::WITHDRAWN_JUDGES;
use memfleet_agents_together::{Memory, saying};
use memfleet_domain::derivation::{Conflict, Contradiction, Derivation, Origin, Status};
use memfleet_domain::statement::{StatementKind, StatementOwner};
use memfleet_ports::conformance::knowledge::{closing, conflict, deriving, fact};
use memfleet_ports::conformance::samples::{home, instant};
use memfleet_ports::context::Context;
use memfleet_ports::knowledge::{Knowledge, Work};
use memfleet_ports::knowledge_api::{Correction, UpdateRequest};
use memfleet_ports::refresher::Refresher;
use memfleet_ports::testing::SentenceReader;

const DAY: i64 = 86_400;

#[tokio::test]
async fn statements_worth_keeping_become_facts_in_their_own_words() {
    let memory = Memory::new().await;
    let said = "Hello! Ich lebe dort. My cat is called Pixel. Is that all?  We moved in May.";
    let turn = memory.say(1, said).await;
    let facts = memory.facts_now().await;
    let texts = facts.iter().map(|fact| fact.fact().unwrap().text.as_str());
    let expected = ["My cat is called Pixel.", "We moved in May."];
    assert_eq!(texts.collect::<Vec<_>>(), expected);
    let cat = facts[0].fact().unwrap();
    assert_eq!(
        facts[0].origin,
        Origin::Extracted(SentenceReader::NAME.into())
    );
    assert_eq!(facts[0].turns, [turn.id]);
    assert_eq!(facts[0].valid.start, Some(instant(DAY)));
    assert_eq!(
        &said[cat.evidence.start as usize..cat.evidence.end as usize],
        cat.text
    );
    let labels = cat.statement.unwrap();
    assert_eq!(
        (labels.kind, labels.owner),
        (StatementKind::State, StatementOwner::Speaker)
    );
    assert_eq!((&cat.clause, &*cat.claim.subject), (&None, "ada"));
}

#[tokio::test]
async fn a_statement_that_another_ends_is_closed_where_that_begins() {
    let memory = Memory::new().await;
    memory.say(1, "I live in Rome.").await;
    memory.say(3, "I like Rome.").await;
    memory.say(10, "I live in Oslo now.").await;
    let facts = memory.facts_now().await;
    let (rome, oslo) = (
        saying(&facts, "I live in Rome."),
        saying(&facts, "I live in Oslo now."),
    );
    assert_eq!(rome.valid.end, Some(instant(10 * DAY)));
    assert_eq!((rome.succeeded_by, oslo.valid.end), (Some(oslo.id), None));
    assert_eq!(saying(&facts, "I like Rome.").valid.end, None);
    let conflicts = memory.conflicts().await;
    let told: Vec<_> = conflicts
        .iter()
        .map(|it| (it.contradiction, it.status))
        .collect();
    assert_eq!(told, [(Contradiction::Functional, Status::Settled)]);
    assert_eq!(conflicts[0].judge, SentenceReader::NAME);
}

#[tokio::test]
async fn a_change_that_is_only_possible_ends_nothing_until_it_is_found() {
    let memory = Memory::new().await;
    memory.say(1, "I live in Rome.").await;
    memory.say(10, "Perhaps I live in Oslo.").await;
    let both = ["I live in Rome.", "Perhaps I live in Oslo."];
    assert_eq!(memory.known(20).await, both);
    let conflicts = memory.conflicts().await;
    let told: Vec<_> = conflicts
        .iter()
        .map(|it| (it.status, it.probability))
        .collect();
    assert_eq!(told, [(Status::Possible, Some(0.75))]);
    let conflict = Conflict {
        status: Status::Found,
        ..conflicts[0].clone()
    };
    let work = Work {
        found: vec![conflict],
        ..Work::default()
    };
    memory.store.apply(&home(), work).await.unwrap();
    memory.settle().await;
    assert_eq!(memory.known(20).await, ["Perhaps I live in Oslo."]);
}

#[tokio::test]
async fn a_corrected_statement_was_never_so() {
    let memory = Memory::new().await;
    memory.say_in(1, 1, "I live in Rome.").await;
    memory.say_in(1, 2, "No, I live in Oslo.").await;
    assert_eq!(memory.known(1).await, Vec::<String>::new());
    assert_eq!(memory.known(3).await, ["No, I live in Oslo."]);
}

#[tokio::test]
async fn a_return_to_an_earlier_value_leaves_the_last_statement() {
    let memory = Memory::new().await;
    for (day, text) in [
        (1, "I live in Rome."),
        (5, "I live in Oslo."),
        (9, "I live in Rome again."),
    ] {
        memory.say(day, text).await;
    }
    assert_eq!(memory.known(2).await, ["I live in Rome."]);
    assert_eq!(memory.known(6).await, ["I live in Oslo."]);
    assert_eq!(memory.known(20).await, ["I live in Rome again."]);
}

#[tokio::test]
async fn an_older_statement_that_is_told_later_is_ended_by_the_newer_one() {
    let memory = Memory::new().await;
    memory.say(10, "I live in Oslo.").await;
    memory.say(1, "I live in Rome.").await;
    assert_eq!(memory.known(20).await, ["I live in Oslo."]);
    assert_eq!(memory.known(2).await, ["I live in Rome."]);
}

#[tokio::test]
async fn a_forgotten_statement_gives_back_what_it_ended() {
    let memory = Memory::new().await;
    memory.say(1, "I live in Rome.").await;
    let oslo = memory.say(10, "I live in Oslo now.").await;
    memory.forget(&[oslo.id]).await;
    memory.settle().await;
    assert_eq!(memory.known(20).await, ["I live in Rome."]);
}

#[tokio::test]
async fn statements_of_one_instant_end_each_other_not() {
    let memory = Memory::new().await;
    memory.say(1, "I live in Rome.").await;
    memory.say(1, "I live in Oslo.").await;
    assert_eq!(memory.known(1).await.len(), 2);
}

#[tokio::test]
async fn a_corrected_statement_stands_beside_what_is_said_later() {
    let memory = Memory::new().await;
    memory.say(1, "I live in Rome.").await;
    let home_ = memory.facts_now().await.remove(0);
    let request = UpdateRequest {
        space: home().space,
        id: home_.id,
        version: None,
        correction: Correction::Says {
            text: Some("I live in Turin.".to_owned()),
            value: None,
            valid: None,
        },
    };
    let call = Context::new(home().tenant, Duration::from_mins(1));
    let corrected = memory.refresher.correct(&call, &request).await.unwrap();
    let draft = corrected.fact().unwrap();
    assert_eq!((&*draft.text, draft.statement), ("I live in Turin.", None));
    memory.say(10, "I live in Oslo now.").await;
    assert_eq!(
        memory.known(20).await,
        ["I live in Turin.", "I live in Oslo now."]
    );
    let conflicts = memory.conflicts().await;
    let told: Vec<_> = conflicts.iter().map(|it| (it.older, it.status)).collect();
    assert_eq!(told, [(home_.id, Status::Open)]);
}

/// A memory of an earlier version, in which rules said that Ada lived in Rome and then in Oslo, and
/// noted a conflict of both.
async fn of_rules(judge: &str) -> (Memory, [Derivation; 2]) {
    let memory = Memory::without_reader().await;
    let rome = memory.say(1, "I live in Rome.").await;
    let oslo = memory.say(10, "I moved to Oslo.").await;
    let by_rules = |turn, city, day| Derivation {
        origin: Origin::Extracted("rules-2".to_owned()),
        ..fact(turn, "Ada", city, instant(day * DAY))
    };
    let facts = [by_rules(&rome, "Rome", 1), by_rules(&oslo, "Oslo", 10)];
    let [older, newer] = &facts;
    let waiting = Conflict {
        judge: judge.to_owned(),
        ..conflict(older, newer)
    };
    let work = Work {
        rewrites: vec![deriving(&[older]), deriving(&[newer])],
        found: vec![waiting],
        ..Work::default()
    };
    memory.store.apply(&home(), work).await.unwrap();
    (memory, facts)
}

#[tokio::test]
async fn a_conflict_by_rules_that_waits_is_dismissed() {
    for judge in WITHDRAWN_JUDGES {
        let (memory, _) = of_rules(judge).await;
        memory.settle_alone().await;
        let conflicts = memory.conflicts().await;
        assert_eq!(conflicts[0].status, Status::Dismissed, "{judge}");
        assert_eq!(memory.known(20).await.len(), 2);
    }
}

#[tokio::test]
async fn facts_by_rules_stay_until_a_rebuild_replaces_them_by_statements() {
    let (memory, [rome, oslo]) = of_rules("rules-2").await;
    let closing = Work {
        rewrites: vec![closing(&rome, &oslo, 11 * DAY)],
        ..Work::default()
    };
    memory.store.apply(&home(), closing).await.unwrap();
    memory.settle().await;
    assert_eq!(memory.known(20).await, ["Ada lives in Oslo."]);
    memory.rebuild_as_statements().await;
    memory.settle_alone().await;
    let facts = memory.facts_now().await;
    let texts = facts.iter().map(|fact| fact.fact().unwrap().text.as_str());
    let texts: Vec<&str> = texts.collect();
    assert_eq!(texts, ["I live in Rome.", "I moved to Oslo."]);
}
