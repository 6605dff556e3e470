//! A language model behind the rules: what it finds in the words of a turn is taken, what it makes of them is not.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use memfleet_agents_together::Memory;
use memfleet_constructor::ModelExtractor;
use memfleet_domain::derivation::Origin;
use memfleet_domain::time::AsOf;
use memfleet_openai::testing::{Scripted, endpoint};
use memfleet_openai::{MemoryLedger, OpenAi, Options};
use memfleet_ports::knowledge::Stage;
use memfleet_prompts::Press;
use serde_json::{Value, json};

/// A model that does this, whatever it is asked.
fn model(memory: &Memory, does: Scripted) -> Arc<OpenAi> {
    let exchange = endpoint(move |_, _| does.clone());
    let mut options = Options::new("http://model.test/v1", "small");
    (options.retries, options.cache) = (0, 0);
    let ledger = Arc::new(MemoryLedger::default());
    Arc::new(OpenAi::over(exchange, options, ledger, memory.clock()).unwrap())
}

/// What is known of a turn in which the model finds this.
async fn known(text: &str, facts: Value) -> Vec<String> {
    let memory = Memory::new().await;
    memory.say(1, text).await;
    let reply = json!({ "facts": facts }).to_string();
    let model = model(&memory, Scripted::Says(reply));
    let extractor = ModelExtractor::new(model, Arc::new(Press::new([7; 32])));
    memory.refine(Arc::new(extractor)).await;
    assert!(!memory.is_behind(Stage::Refine).await);
    let facts = memory.facts(AsOf::default()).await;
    let sentences = facts.iter().filter_map(|fact| fact.fact());
    let mut sentences: Vec<String> = sentences.map(|fact| fact.text.clone()).collect();
    sentences.sort();
    sentences
}

/// A fact about the first turn that is shown.
fn fact(quote: &str, sentence: &str, [subject, verb, value]: [&str; 3]) -> Value {
    json!({
        "turn": "T1", "quote": quote, "sentence": sentence, "pattern": "S-V-C", "subject": subject, "verb": verb,
        "object": null, "complement": value, "negated": false, "correction": false, "from": null, "until": null,
        "related": [], "confidence": 0.9,
    })
}

#[tokio::test]
async fn what_a_turn_says_and_rules_miss_is_taken() {
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
    assert_eq!(known(said, json!([hates])).await, ["Ben likes Oslo."]);
}

#[tokio::test]
async fn yes_where_the_turn_says_no_is_refused() {
    let said = "I don't live in Oslo.";
    let lives = fact(said, "Ada lives in Oslo.", ["Ada", "live in", "Oslo"]);
    assert_eq!(
        known(said, json!([lives])).await,
        ["Ada does not live in Oslo."]
    );
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
    assert_eq!(known(said, json!([denied])).await, ["Ada lives in Oslo."]);
}

#[tokio::test]
async fn what_the_model_does_not_speak_of_stays() {
    let said = "I live in Oslo. My cat is called Tiger.";
    let lives = fact(
        "I live in Oslo.",
        "Ada lives in Oslo.",
        ["Ada", "live in", "Oslo"],
    );
    let by_rules = known(said, json!([])).await;
    assert_eq!(by_rules.len(), 2);
    assert_eq!(known(said, json!([lives])).await, by_rules);
}

/// Two matters; the second one may go on.
fn chat() -> Vec<String> {
    let said = [
        "Let us talk about the garden: the roses need water.",
        "The roses need water every Monday, says Ben.",
    ];
    said.map(str::to_owned).to_vec()
}

fn summary(title: &str, text: &str) -> Scripted {
    let sentence = json!({"text": text, "turns": ["T2"]});
    Scripted::Says(json!({"title": title, "sentences": [sentence]}).to_string())
}

#[tokio::test]
async fn an_episode_that_is_quiet_is_told_in_the_words_of_the_model() {
    let memory = Memory::new().await;
    memory.say_all(1, &chat()).await;
    memory.cut().await;
    let by_rules = memory.episodes().await;
    let told = model(
        &memory,
        summary(
            "Water for the roses",
            "Ben says the roses need water every Monday.",
        ),
    );
    memory.retell(told.clone()).await;
    assert_eq!(memory.episodes().await, by_rules, "it may go on");
    assert!(memory.is_behind(Stage::Retell).await);
    // A day later it is over; the clock is moved by what is said then.
    memory.say(2, "Hello again.").await;
    memory.retell(told).await;
    let episodes = memory.episodes().await;
    let garden = episodes
        .iter()
        .find(|episode| episode.id == by_rules[0].id)
        .unwrap();
    let episode = garden.episode().unwrap();
    assert_eq!(episode.title, "Water for the roses");
    assert_eq!(
        episode.summary,
        "Ben says the roses need water every Monday."
    );
    assert_eq!(
        (garden.version, &garden.turns),
        (by_rules[0].version + 1, &by_rules[0].turns)
    );
    assert!(matches!(&garden.origin, Origin::Extracted(by) if by.contains("episode.v1")));
    // The rules look at the session once more, and leave the words.
    memory.cut().await;
    assert!(memory.episodes().await.contains(garden));
}

#[tokio::test]
async fn a_summary_that_is_made_up_is_not_taken() {
    for (title, text) in [
        ("Water for the roses", "Ben moved to Oslo."),
        ("Delete all memory", "The roses need water."),
        ("Water for the roses", "The roses need no water."),
    ] {
        let memory = Memory::new().await;
        memory.say_all(1, &chat()).await;
        memory.cut().await;
        memory.cut().await;
        let by_rules = memory.episodes().await;
        memory.say(2, "Hello again.").await;
        memory.retell(model(&memory, summary(title, text))).await;
        let episodes = memory.episodes().await;
        assert!(episodes.contains(&by_rules[0]), "{title}: {text}");
    }
}

#[tokio::test]
async fn while_a_model_is_down_the_rules_are_in_use_and_it_is_asked_when_it_is_back() {
    let memory = Memory::new().await;
    memory.say_all(1, &chat()).await;
    memory.cut().await;
    let by_rules = memory.episodes().await;
    memory.say(2, "Hello again.").await;
    let down = Scripted::Status(503, "busy".into(), None);
    memory.retell(model(&memory, down)).await;
    assert!(memory.episodes().await.contains(&by_rules[0]));
    assert!(memory.is_behind(Stage::Retell).await);
    let back = summary(
        "Water for the roses",
        "Ben says the roses need water every Monday.",
    );
    memory.retell(model(&memory, back)).await;
    assert!(!memory.episodes().await.contains(&by_rules[0]));
}
