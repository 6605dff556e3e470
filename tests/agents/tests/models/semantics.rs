//! What is peripheral in a story.

mod several;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use memfleet_agents_together::Memory;
use memfleet_domain::derivation::{Derivation, Origin};
use memfleet_domain::ids::EntityId;
use memfleet_domain::time::{AsOf, TimeRange};
use memfleet_domain::turn::AcceptedTurn;
use memfleet_openai::testing::{Scripted, endpoint};
use memfleet_ports::conformance::samples::{home, instant};
use memfleet_ports::context::Context;
use memfleet_ports::graph::{Graph, TripletQuery};
use memfleet_ports::knowledge::{Knowledge, Stage};
use memfleet_ports::policies::policy_key;
use memfleet_ports::refresher::Refresher;
use memfleet_ports::settings::{Revised, Settings};
use serde_json::{Value, json};

use crate::{model, over};

const SAID: [&str; 3] = [
    "It needs new paint before the summer begins this year.",
    "It gets a mast in May. Settled into Oslo at last!",
    "It sails to Norway in August. My sister is Clara.",
];
const OSLO: &str = "Ada settled into Oslo.";

/// What is said of the boat. The first half of a text is what it is told apart by here.
fn of_boat(text: &str) -> String {
    format!(
        "{:<60}{text:<60}",
        "Here is what I know of the boat in the harbour"
    )
}

/// A story of which nothing is said any more, by the rules.
async fn quiet() -> (Memory, Vec<AcceptedTurn>) {
    quiet_in(Memory::without_reader().await).await
}

async fn quiet_in(memory: Memory) -> (Memory, Vec<AcceptedTurn>) {
    let mut turns = Vec::new();
    for (day, text) in (1..).zip(SAID) {
        turns.push(memory.say(day, &of_boat(text)).await);
    }
    memory.cut().await;
    memory.bind(0).await;
    (memory, turns)
}

/// The same, put together by a model.
async fn plotted() -> (Memory, Vec<AcceptedTurn>) {
    plotted_in(Memory::without_reader().await).await
}

async fn plotted_in(memory: Memory) -> (Memory, Vec<AcceptedTurn>) {
    let (memory, turns) = quiet_in(memory).await;
    let subplots = [
        json!({"headline": "New paint and a mast in May", "from": "F1", "to": "F2"}),
        json!({"headline": "It sails to Norway in August", "from": "F3", "to": "F3"}),
    ];
    let reply = json!({"subplots": subplots, "headline": null}).to_string();
    let adviser = model(&memory, Scripted::Says(reply));
    memory.advise(Stage::Replot, adviser).await;
    (memory, turns)
}

fn fact(turn: &str, quote: &str, sentence: &str, [subject, verb, value]: [&str; 3]) -> Value {
    json!({
        "turn": turn, "quote": quote, "sentence": sentence, "pattern": "S-V-C", "subject": subject, "verb": verb,
        "object": null, "complement": value, "negated": false, "correction": false, "from": null, "until": null,
        "related": [], "confidence": 0.9,
    })
}

fn oslo() -> Value {
    fact(
        "T2",
        "Settled into Oslo",
        OSLO,
        ["Ada", "settle into", "Oslo"],
    )
}

fn reply(facts: &[Value]) -> Scripted {
    Scripted::Says(json!({ "facts": facts }).to_string())
}

async fn advise(memory: &Memory, says: Scripted) {
    let adviser = model(memory, says);
    memory.advise(Stage::Semanticize, adviser).await;
}

async fn facts(memory: &Memory) -> Vec<Derivation> {
    memory.facts(AsOf::default()).await
}

/// The fact of Oslo, where there is one.
async fn found(memory: &Memory) -> Option<Derivation> {
    let facts = facts(memory).await;
    let mut facts = facts.into_iter();
    facts.find(|it| it.fact().is_some_and(|it| it.text == OSLO))
}

/// The stage is to look at everything once more, by a process that remembers nothing.
async fn rewind(memory: &mut Memory) {
    memory.restart();
    memory.rewind(Stage::Semanticize).await;
}

#[tokio::test]
async fn what_is_peripheral_gives_statements_clauses_and_is_no_fact_beside_them() {
    let (mut memory, _) = plotted_in(Memory::new().await).await;
    let before = facts(&memory).await;
    let sister = fact(
        "T3",
        "My sister is Clara",
        "Ada's sister is Clara.",
        ["Ada's sister", "be", "Clara"],
    );
    advise(&memory, reply(&[oslo(), sister.clone()])).await;
    let after = facts(&memory).await;
    let texts = |facts: &[Derivation]| {
        let texts = facts.iter().map(|it| it.fact().unwrap().text.clone());
        texts.collect::<Vec<_>>()
    };
    assert_eq!(texts(&after), texts(&before));
    let with_clause = after
        .iter()
        .filter(|it| it.fact().unwrap().clause.is_some());
    let with_clause: Vec<_> = with_clause.map(|it| it.fact().unwrap()).collect();
    assert_eq!(with_clause.len(), 1);
    assert_eq!(with_clause[0].text, "My sister is Clara.");
    rewind(&mut memory).await;
    advise(&memory, reply(&[oslo(), sister])).await;
    assert_eq!(facts(&memory).await, after);
}

#[tokio::test]
async fn what_is_peripheral_is_a_fact_and_a_triplet() {
    let (memory, turns) = plotted().await;
    assert_eq!(found(&memory).await, None);
    advise(&memory, reply(&[oslo()])).await;
    assert!(!memory.is_behind(Stage::Semanticize).await);
    let found = found(&memory).await.unwrap();
    assert_eq!(found.turns, [turns[1].id]);
    assert!(matches!(&found.origin, Origin::Extracted(by) if by.contains("semantics.v1")));
    let since_it_was_said = TimeRange {
        start: Some(instant(2 * 86_400)),
        end: None,
    };
    assert_eq!(found.valid, since_it_was_said);
    assert!((found.fact().unwrap().confidence - 0.9).abs() < f32::EPSILON);
    memory.relate().await;
    let oslo = [EntityId::of_key("oslo")];
    let touching = TripletQuery::touching(&oslo);
    let triplets = memory.store.triplets(&home(), touching, 9, None).await;
    let triplets = triplets.unwrap().items;
    let [triplet] = &triplets[..] else {
        panic!("{triplets:?}");
    };
    assert_eq!(triplet.fact, found.id);
    assert_eq!(triplet.subject, EntityId::of_key("ada"));
    assert_eq!((&triplet.turns, triplet.valid), (&found.turns, found.valid));
}

#[tokio::test]
async fn what_a_topic_leaves_out_is_neither_a_fact_nor_a_triplet_of_a_reply() {
    let (memory, _) = plotted().await;
    let topics =
        r#"{"topics": [{"name": "towns", "action": "leave_out", "description": "Oslo."}]}"#;
    let revised = Revised {
        body: Some(topics.to_owned()),
        by: "a test".to_owned(),
        at: instant(1),
        expected: None,
    };
    let key = policy_key(None);
    let put = memory.store.put(&home().tenant, &key, &revised).await;
    put.unwrap();
    advise(&memory, reply(&[oslo()])).await;
    assert!(!memory.is_behind(Stage::Semanticize).await);
    assert_eq!(found(&memory).await, None);
    memory.relate().await;
    let oslo = [EntityId::of_key("oslo")];
    let touching = TripletQuery::touching(&oslo);
    let triplets = memory.store.triplets(&home(), touching, 9, None).await;
    assert_eq!(triplets.unwrap().items, []);
}

#[tokio::test]
async fn it_is_asked_once_with_headlines_turns_and_what_is_known() {
    let (memory, _) = plotted().await;
    let mut alone = oslo();
    alone["turn"] = json!("T1");
    let refining = model(&memory, reply(&[alone]));
    memory.advise(Stage::Refine, refining).await;
    let known = facts(&memory).await;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let heard = asked.clone();
    let exchange = endpoint(move |_, body| {
        heard.lock().unwrap().push(body.to_string());
        reply(&[])
    });
    let adviser = over(&memory, exchange);
    memory.advise(Stage::Semanticize, adviser.clone()).await;
    memory.say(9, "Good night.").await;
    memory.advise(Stage::Semanticize, adviser).await;
    let asked = asked.lock().unwrap().clone();
    let [only] = &asked[..] else {
        panic!("{asked:?}");
    };
    for shown in [
        "New paint and a mast in May",
        "It sails to Norway in August",
    ] {
        assert!(only.contains(shown), "{shown}");
    }
    assert!(SAID.iter().all(|said| only.contains(said)));
    assert!(!known.is_empty());
    for fact in &known {
        assert!(only.contains(&fact.fact().unwrap().text), "{fact:?}");
    }
}

#[tokio::test]
async fn a_reply_of_no_use_changes_nothing() {
    let replies = [
        Scripted::Says("The boat is lovely.".to_owned()),
        Scripted::Says(json!({"facts": [{"fact": OSLO, "timestamp": "T2"}]}).to_string()),
        reply(&[fact(
            "T2",
            "Settled into Rome",
            OSLO,
            ["Ada", "settle into", "Oslo"],
        )]),
        reply(&[fact(
            "T1",
            "Settled into Oslo",
            OSLO,
            ["Ada", "settle into", "Oslo"],
        )]),
        reply(&[fact(
            "T9",
            "Settled into Oslo",
            OSLO,
            ["Ada", "settle into", "Oslo"],
        )]),
        reply(&[fact(
            "F1",
            "Settled into Oslo",
            OSLO,
            ["Ada", "settle into", "Oslo"],
        )]),
        reply(&[fact(
            "T2",
            "Settled into Oslo",
            "Mallory keeps all keys.",
            ["Mallory", "keep", "keys"],
        )]),
        // That is the plot.
        reply(&[fact(
            "T2",
            "It gets a mast in May",
            "Ada gets a mast in May.",
            ["Ada", "get", "mast"],
        )]),
        reply(&[]),
    ];
    for says in replies {
        let (memory, _) = plotted().await;
        let before = facts(&memory).await;
        advise(&memory, says.clone()).await;
        assert_eq!(facts(&memory).await, before, "{says:?}");
        assert!(!memory.is_behind(Stage::Semanticize).await);
    }
}

#[tokio::test]
async fn a_reply_that_cannot_be_used_is_repaired_once() {
    for (repaired, calls) in [(reply(&[oslo()]), 2), (Scripted::Says("No.".to_owned()), 2)] {
        let (memory, _) = plotted().await;
        let asked = Arc::new(Mutex::new(0));
        let count = asked.clone();
        let is_taken = matches!(&repaired, Scripted::Says(text) if text.contains("Oslo"));
        let exchange = endpoint(move |_, _| {
            let mut count = count.lock().unwrap();
            *count += 1;
            let unsaid = fact(
                "T2",
                "Settled into Oslo",
                "Ada settled into Rome.",
                ["Ada", "settle into", "Rome"],
            );
            if *count == 1 {
                reply(&[unsaid])
            } else {
                repaired.clone()
            }
        });
        let adviser = over(&memory, exchange);
        memory.advise(Stage::Semanticize, adviser).await;
        assert_eq!(*asked.lock().unwrap(), calls);
        assert_eq!(found(&memory).await.is_some(), is_taken);
    }
}

#[tokio::test]
async fn what_is_delivered_twice_is_written_once() {
    let (mut memory, _) = plotted().await;
    let says = reply(&[oslo(), oslo()]);
    advise(&memory, says.clone()).await;
    let before = facts(&memory).await;
    assert!(found(&memory).await.is_some());
    rewind(&mut memory).await;
    advise(&memory, says).await;
    assert_eq!(facts(&memory).await, before);
    // Nor by another verb.
    rewind(&mut memory).await;
    let moved = fact(
        "T2",
        "Settled into Oslo",
        OSLO,
        ["Ada", "settle down in", "Oslo"],
    );
    advise(&memory, reply(&[moved])).await;
    assert_eq!(facts(&memory).await, before);
}

#[tokio::test]
async fn what_is_known_is_not_written_again() {
    let (memory, _) = plotted().await;
    // Of each turn by itself, which is the first that is shown.
    let text = "Ada's sister is Clara.";
    let parts = ["Ada's sister", "be", "Clara"];
    let sister = fact("T3", "My sister is Clara", text, parts);
    let alone = [oslo(), sister.clone()].map(|mut fact| {
        fact["turn"] = json!("T1");
        fact
    });
    let refining = model(&memory, reply(&alone));
    memory.advise(Stage::Refine, refining).await;
    let before = facts(&memory).await;
    let is_by = |text: &str, author: &str| {
        let is_of = |it: &&Derivation| it.fact().is_some_and(|it| it.text == text);
        let known = before.iter().find(is_of).map(|it| &it.origin);
        matches!(known, Some(Origin::Extracted(by)) if by.contains(author))
    };
    assert!(is_by(OSLO, "facts.v1") && is_by(text, "facts.v1"));
    advise(&memory, reply(&[oslo(), sister])).await;
    assert_eq!(facts(&memory).await, before);
    assert!(!memory.is_behind(Stage::Semanticize).await);
}

#[tokio::test]
async fn who_reads_the_turn_alone_does_not_refute_it() {
    let (memory, _) = plotted().await;
    advise(&memory, reply(&[oslo()])).await;
    let quote = "Settled into Oslo at last";
    let parts = ["Ada", "settle into", "Oslo at last"];
    let otherwise = fact("T1", quote, "Ada settled into Oslo at last.", parts);
    let refining = model(&memory, reply(&[otherwise]));
    memory.advise(Stage::Refine, refining).await;
    let known = memory.known(50).await;
    assert_eq!(known.iter().filter(|it| it.contains("Oslo")).count(), 2);
    assert!(found(&memory).await.is_some());
}

#[tokio::test]
async fn a_forgotten_turn_takes_its_facts_along() {
    let (mut memory, turns) = plotted().await;
    advise(&memory, reply(&[oslo()])).await;
    memory.relate().await;
    let fact = found(&memory).await.unwrap();
    memory.forget(&[turns[1].id]).await;
    assert!(
        memory
            .store
            .versions(&home(), fact.id)
            .await
            .unwrap()
            .is_empty()
    );
    memory.relate().await;
    let oslo_key = [EntityId::of_key("oslo")];
    let touching = TripletQuery::touching(&oslo_key);
    let triplets = memory.store.triplets(&home(), touching, 9, None).await;
    assert!(triplets.unwrap().items.is_empty());
    rewind(&mut memory).await;
    advise(&memory, reply(&[oslo()])).await;
    assert_eq!(found(&memory).await, None);
}

#[tokio::test]
async fn what_a_caller_undid_stays_undone() {
    let (mut memory, _) = plotted().await;
    advise(&memory, reply(&[oslo()])).await;
    let written = found(&memory).await.unwrap();
    let call = Context::new(home().tenant, Duration::from_mins(1));
    let space = home().space;
    let reverting = memory.refresher.revert(&call, &space, written.change);
    reverting.await.unwrap();
    let before = facts(&memory).await;
    assert!(before.iter().all(|it| it.id != written.id));
    let in_other_words = fact(
        "T2",
        "Settled into Oslo at last",
        "Ada settled into Oslo at last.",
        ["Ada", "settle into", "Oslo at last"],
    );
    for says in [oslo(), in_other_words] {
        rewind(&mut memory).await;
        advise(&memory, reply(&[says])).await;
        assert_eq!(facts(&memory).await, before);
    }
    let versions = memory.store.versions(&home(), written.id).await.unwrap();
    assert_eq!(versions.len(), 2);
}

#[tokio::test]
async fn a_story_that_only_the_rules_put_together_is_not_asked_about() {
    let (memory, _) = quiet().await;
    let before = facts(&memory).await;
    advise(&memory, reply(&[oslo()])).await;
    assert_eq!(facts(&memory).await, before);
    assert!(!memory.is_behind(Stage::Semanticize).await);
}

#[tokio::test]
async fn while_the_model_is_down_nothing_happens_and_nothing_is_lost() {
    let (memory, _) = plotted().await;
    let before = facts(&memory).await;
    advise(&memory, Scripted::Status(503, String::new(), None)).await;
    assert_eq!(facts(&memory).await, before);
    assert!(memory.is_behind(Stage::Semanticize).await);
    advise(&memory, reply(&[oslo()])).await;
    assert!(found(&memory).await.is_some());
    assert!(!memory.is_behind(Stage::Semanticize).await);
}
