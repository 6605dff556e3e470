//! Clauses that a model gives to statements.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use memfleet_agents_together::{Memory, saying};
use memfleet_domain::derivation::{ChangeKind, Derivation, Origin};
use memfleet_domain::fact::Draft;
use memfleet_domain::ids::EntityId;
use memfleet_domain::time::AsOf;
use memfleet_openai::testing::{Scripted, endpoint};
use memfleet_ports::conformance::samples::home;
use memfleet_ports::graph::{Graph, TripletQuery};
use memfleet_ports::knowledge::{ChangeFilter, Knowledge, Stage};
use memfleet_ports::refresher::Refresher;
use memfleet_ports::testing::SentenceReader;
use serde_json::{Value, json};

use super::{call, clause_of, correct};
use crate::finding::fact;
use crate::{model, over};

const LIVES: &str = "I live in Oslo.";
const PLAYS: &str = "I play the cello.";

fn lives() -> Value {
    fact(LIVES, "Ada lives in Oslo.", ["Ada", "live in", "Oslo"])
}

fn plays() -> Value {
    fact(
        "play the cello",
        "Ada plays the cello.",
        ["Ada", "play", "cello"],
    )
}

/// A model that finds these facts.
async fn refine(memory: &Memory, facts: &[Value]) {
    let reply = json!({ "facts": facts }).to_string();
    let model = model(memory, Scripted::Says(reply));
    memory.advise(Stage::Refine, model).await;
    assert!(!memory.is_behind(Stage::Refine).await);
}

async fn said(text: &str) -> Memory {
    let memory = Memory::new().await;
    memory.say(1, text).await;
    memory
}

/// A fact as it was before it had a clause.
fn without_clause(fact: &Derivation) -> Draft {
    Draft {
        clause: None,
        ..fact.fact().unwrap().clone()
    }
}

#[tokio::test]
async fn each_statement_gets_the_clause_of_the_fact_of_its_words() {
    let memory = said(&format!("{LIVES} {PLAYS}")).await;
    let before = memory.facts_now().await;
    assert_eq!(before.len(), 2);
    refine(&memory, &[plays(), lives()]).await;
    let after = memory.facts_now().await;
    for (text, predicate) in [(LIVES, "live in"), (PLAYS, "play")] {
        let (one, other) = (saying(&before, text), saying(&after, text));
        assert_eq!(clause_of(&after, text).unwrap().predicate, predicate);
        assert_eq!(without_clause(other), *one.fact().unwrap());
        assert_eq!((other.id, other.version), (one.id, 2));
        assert_eq!((other.valid, &other.turns), (one.valid, &one.turns));
        assert_eq!(other.origin, Origin::Extracted(SentenceReader::NAME.into()));
        let filter = ChangeFilter {
            ids: vec![other.change],
            ..ChangeFilter::default()
        };
        let changes = memory.store.changes(&home(), &filter, 1, None).await;
        let change = changes.unwrap().items.remove(0).change;
        assert_eq!(change.kind, ChangeKind::Derived);
        assert!(change.reason.contains("facts.v1"), "{}", change.reason);
    }
    assert_eq!(after.len(), 2);
}

#[tokio::test]
async fn what_is_read_twice_gives_one_clause() {
    let memory = said(LIVES).await;
    refine(&memory, &[lives(), lives()]).await;
    let after = memory.facts_now().await;
    assert_eq!(after[0].version, 2);
    memory.rewind(Stage::Refine).await;
    let moved = fact(LIVES, "Ada is in Oslo.", ["Ada", "be in", "Oslo"]);
    refine(&memory, &[lives(), moved]).await;
    memory.settle().await;
    assert_eq!(memory.facts_now().await, after);
}

#[tokio::test]
async fn two_that_read_at_once_give_one_clause() {
    let memory = said(LIVES).await;
    let reply = json!({ "facts": [lives()] }).to_string();
    let model = model(&memory, Scripted::Says(reply));
    tokio::join!(
        memory.advise_anew(Stage::Refine, model.clone()),
        memory.advise_anew(Stage::Refine, model),
    );
    assert_eq!(memory.facts_now().await[0].version, 2);
}

#[tokio::test]
async fn a_fact_of_other_words_is_no_fact() {
    // The reader makes no facts of the weather.
    let memory = said(&format!("{LIVES} The weather is awful.")).await;
    let before = memory.facts_now().await;
    let awful = fact(
        "The weather is awful.",
        "The weather is awful.",
        ["The weather", "be", "awful"],
    );
    let hates = fact(LIVES, "Ada hates Oslo.", ["Ada", "hate", "Oslo"]);
    refine(&memory, &[awful, hates]).await;
    assert_eq!(memory.facts_now().await, before);
}

#[tokio::test]
async fn a_clause_denies_what_its_statement_denies() {
    let memory = said("I don't live in Oslo.").await;
    let mut denied = fact(
        "I don't live in Oslo.",
        "Ada does not live in Oslo.",
        ["Ada", "live in", "Oslo"],
    );
    let before = memory.facts_now().await;
    let lives = fact(
        "live in Oslo.",
        "Ada lives in Oslo.",
        ["Ada", "live in", "Oslo"],
    );
    refine(&memory, &[lives]).await;
    assert_eq!(memory.facts_now().await, before);
    memory.rewind(Stage::Refine).await;
    denied["negated"] = json!(true);
    refine(&memory, &[denied.clone()]).await;
    let after = memory.facts_now().await;
    assert!(clause_of(&after, "I don't live in Oslo.").unwrap().negated);
    denied["quote"] = json!(LIVES);
    let memory = said(LIVES).await;
    refine(&memory, &[denied]).await;
    assert_eq!(clause_of(&memory.facts_now().await, LIVES), None);
}

#[tokio::test]
async fn a_statement_that_a_caller_corrected_is_left_alone() {
    let memory = said(&format!("{LIVES} {PLAYS}")).await;
    let oslo = saying(&memory.facts_now().await, LIVES).clone();
    let corrected = correct(&memory, &oslo, "I live in Bergen.").await;
    refine(&memory, &[lives(), plays()]).await;
    let after = memory.facts_now().await;
    assert_eq!(*saying(&after, "I live in Bergen."), corrected);
    assert!(clause_of(&after, PLAYS).is_some());
    assert_eq!(after.len(), 2);
}

#[tokio::test]
async fn a_correction_has_no_clause_of_other_words() {
    let memory = said(LIVES).await;
    refine(&memory, &[lives()]).await;
    let oslo = memory.facts_now().await.remove(0);
    let corrected = correct(&memory, &oslo, "I live in Bergen.").await;
    let draft = corrected.fact().unwrap();
    assert_eq!((&draft.clause, draft.statement), (&None, None));
    assert!(draft.is_statement());
}

#[tokio::test]
async fn a_clause_that_a_caller_undid_stays_undone() {
    let memory = said(LIVES).await;
    refine(&memory, &[lives()]).await;
    let change = memory.facts_now().await[0].change;
    let space = home().space;
    let undone = memory.refresher.revert(&call(), &space, change).await;
    undone.unwrap();
    let before = memory.facts_now().await;
    assert_eq!(clause_of(&before, LIVES), None);
    memory.rewind(Stage::Refine).await;
    refine(&memory, &[lives()]).await;
    assert_eq!(memory.facts_now().await, before);
}

#[tokio::test]
async fn turns_without_statements_are_not_shown_to_the_model() {
    let memory = said("Hello! It rains.").await;
    memory.say(2, LIVES).await;
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let exchange = endpoint(move |_, _| {
        count.fetch_add(1, Ordering::SeqCst);
        Scripted::Says(json!({"facts": [lives()]}).to_string())
    });
    let model = over(&memory, exchange);
    for _ in 0..2 {
        memory.advise(Stage::Refine, model.clone()).await;
        assert!(!memory.is_behind(Stage::Refine).await);
        memory.rewind(Stage::Refine).await;
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn statements_are_derived_before_they_get_clauses() {
    let memory = Memory::new().await;
    memory.say_alone(1, LIVES).await;
    let reply = json!({ "facts": [lives()] }).to_string();
    let model = model(&memory, Scripted::Says(reply));
    memory.advise(Stage::Refine, model.clone()).await;
    assert!(memory.is_behind(Stage::Refine).await);
    memory.settle().await;
    memory.advise(Stage::Refine, model).await;
    assert!(clause_of(&memory.facts_now().await, LIVES).is_some());
}

#[tokio::test]
async fn a_rebuild_leaves_the_clauses_of_what_it_confirms() {
    let memory = said(&format!("{LIVES} {PLAYS}")).await;
    refine(&memory, &[plays(), lives()]).await;
    let before = memory.facts_now().await;
    memory.rebuild_as_statements().await;
    assert_eq!(memory.facts_now().await, before);
    assert!(clause_of(&before, LIVES).is_some());
}

#[tokio::test]
async fn a_clause_draws_on_the_turns_that_its_words_are_from() {
    let memory = Memory::new().await;
    let name = memory.say_in(1, 1, "The boat is called Wanda.").await;
    let paints = memory.say_in(1, 2, "I paint it today.").await;
    let mut found = fact("I paint it", "Ada paints Wanda.", ["Ada", "paint", "Wanda"]);
    (found["turn"], found["related"]) = (json!("T2"), json!(["T1"]));
    refine(&memory, &[found]).await;
    let painted = memory.facts_now().await.remove(0);
    assert_eq!(painted.fact().unwrap().predicate(), "paint");
    assert_eq!(painted.turns, [paints.id, name.id]);
    // Without the name it is a statement again.
    memory.forget(&[name.id]).await;
    memory.settle().await;
    let left = memory.facts_now().await;
    assert_eq!(clause_of(&left, "I paint it today."), None);
    assert_eq!(left[0].turns, [paints.id]);
}

#[tokio::test]
async fn a_statement_with_a_clause_is_compared_by_its_words() {
    let memory = said(LIVES).await;
    refine(&memory, &[lives()]).await;
    memory.settle().await;
    memory.say(10, "I live in Rome now.").await;
    assert_eq!(memory.known(5).await, [LIVES]);
    assert_eq!(memory.known(20).await, ["I live in Rome now."]);
    assert!(clause_of(&memory.facts_now().await, LIVES).is_some());
}

#[tokio::test]
async fn the_graph_relates_what_a_clause_says() {
    let memory = said("I live in Oslo with Ben.").await;
    let lives = fact(
        "I live in Oslo",
        "Ada lives in Oslo.",
        ["Ada", "live in", "Oslo"],
    );
    refine(&memory, &[lives]).await;
    memory.relate().await;
    let ada = [EntityId::of_key("ada")];
    let query = TripletQuery::touching(&ada);
    let found = memory.store.triplets(&home(), query, 9, None).await;
    let found = found.unwrap().items;
    let mut said: Vec<_> = found.iter().map(|it| it.predicate.as_str()).collect();
    said.sort_unstable();
    assert_eq!(said, ["mentions", "residence"]);
    assert_eq!(memory.facts(AsOf::default()).await.len(), 1);
}
