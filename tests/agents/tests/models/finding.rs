//! Facts of a turn where no reader of turns is configured.

use memfleet_agents_together::Memory;
use memfleet_domain::derivation::Derivation;
use memfleet_domain::fact::Stance;
use memfleet_domain::time::{AsOf, TimeRange};
use memfleet_openai::testing::{Scripted, endpoint};
use memfleet_ports::conformance::samples::instant;
use memfleet_ports::knowledge::Stage;
use serde_json::{Value, json};

use crate::{model, over};

/// The facts of a turn in which the model finds this.
async fn found(text: &str, facts: Value) -> Vec<Derivation> {
    let memory = Memory::without_reader().await;
    memory.say(1, text).await;
    let reply = json!({ "facts": facts }).to_string();
    let model = model(&memory, Scripted::Says(reply));
    memory.advise(Stage::Refine, model).await;
    assert!(!memory.is_behind(Stage::Refine).await);
    memory.facts(AsOf::default()).await
}

/// Their sentences.
async fn known(text: &str, facts: Value) -> Vec<String> {
    let facts = found(text, facts).await;
    let sentences = facts.iter().filter_map(|fact| fact.fact());
    sorted(sentences.map(|fact| fact.text.clone()).collect())
}

fn sorted(mut sentences: Vec<String>) -> Vec<String> {
    sentences.sort();
    sentences
}

/// A fact about the first turn that is shown.
pub(crate) fn fact(quote: &str, sentence: &str, [subject, verb, value]: [&str; 3]) -> Value {
    json!({
        "turn": "T1", "quote": quote, "sentence": sentence, "pattern": "S-V-C", "subject": subject, "verb": verb,
        "object": null, "complement": value, "negated": false, "correction": false, "from": null, "until": null,
        "related": [], "confidence": 0.9,
    })
}

#[tokio::test]
async fn what_a_turn_says_is_taken() {
    let said = "Settled into Oslo at last, and what a view!";
    assert_eq!(known(said, json!([])).await, Vec::<String>::new());
    let settled = fact(
        "Settled into Oslo",
        "Ada settled into Oslo.",
        ["Ada", "settle into", "Oslo"],
    );
    assert_eq!(
        known(said, json!([settled])).await,
        ["Ada settled into Oslo."]
    );
}

#[tokio::test]
async fn a_verb_that_the_turn_does_not_say_is_refused() {
    let said = "Ben likes Oslo.";
    let hates = fact(said, "Ben hates Oslo.", ["Ben", "hate", "Oslo"]);
    assert_eq!(known(said, json!([hates])).await, [""; 0]);
}

#[tokio::test]
async fn yes_where_the_turn_says_no_is_refused() {
    let said = "I don't live in Oslo.";
    let lives = fact(said, "Ada lives in Oslo.", ["Ada", "live in", "Oslo"]);
    assert_eq!(known(said, json!([lives])).await, [""; 0]);
}

#[tokio::test]
async fn no_where_the_turn_says_yes_is_refused() {
    let said = "I live in Oslo.";
    let mut denied = fact(
        said,
        "Ada does not live in Oslo.",
        ["Ada", "live in", "Oslo"],
    );
    denied["negated"] = json!(true);
    assert_eq!(known(said, json!([denied])).await, [""; 0]);
}

#[tokio::test]
async fn dates_and_corrections_that_the_turn_does_not_tell_are_not_taken() {
    let said = "Honestly, the flute? Ada simply adores it";
    let mut adores = fact(said, "Ada adores the flute.", ["Ada", "adore", "flute"]);
    adores["from"] = json!("1950-01-01");
    adores["until"] = json!("1951-01-01");
    adores["correction"] = json!(true);
    let facts = found(said, json!([adores])).await;
    let holds_from_its_turn = TimeRange {
        start: Some(instant(86_400)),
        end: None,
    };
    assert_eq!(facts[0].valid, holds_from_its_turn);
    assert_eq!(facts[0].fact().unwrap().stance, Stance::States);
}

#[tokio::test]
async fn a_turn_that_the_endpoint_always_fails_on_does_not_hold_up_the_others() {
    let memory = Memory::without_reader().await;
    memory
        .say(1, "Settled into Bergen at last, and what a view!")
        .await;
    memory.say(2, "My poison is arsenic.").await;
    memory
        .say(3, "Settled into Oslo at last, and what a view!")
        .await;
    let settled = |city: &str| {
        let quote = format!("Settled into {city}");
        let sentence = format!("Ada settled into {city}.");
        json!({"facts": [fact(&quote, &sentence, ["Ada", "settle into", city])]}).to_string()
    };
    let exchange = endpoint(move |_, body| {
        let asked = body.to_string();
        match asked {
            _ if asked.contains("poison") => Scripted::Status(500, String::new(), None),
            _ if asked.contains("Oslo") => Scripted::Says(settled("Oslo")),
            _ => Scripted::Says(settled("Bergen")),
        }
    });
    let model = over(&memory, exchange);
    memory.advise(Stage::Refine, model.clone()).await;
    // What was read is kept, and the turn waits.
    let read = ["Ada settled into Bergen.", "Ada settled into Oslo."];
    assert_eq!(sorted(memory.known(50).await), read);
    assert!(memory.is_behind(Stage::Refine).await);
    // Others are answered: it is the turn.
    for _ in 0..3 {
        memory.advise(Stage::Refine, model.clone()).await;
    }
    assert!(!memory.is_behind(Stage::Refine).await);
    assert_eq!(sorted(memory.known(50).await), read);
}
