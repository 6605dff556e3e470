//! Titles and summaries of episodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use memfleet_agents_together::Memory;
use memfleet_domain::derivation::{Derivation, Origin};
use memfleet_openai::testing::{Scripted, endpoint};
use memfleet_ports::conformance::samples::home;
use memfleet_ports::context::Context;
use memfleet_ports::knowledge::{Knowledge, Stage};
use memfleet_ports::refresher::Refresher;
use memfleet_prompts::Adviser;
use serde_json::json;

use crate::{model, over};

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
    memory.advise(Stage::Retell, told.clone()).await;
    assert_eq!(memory.episodes().await, by_rules, "it may go on");
    assert!(memory.is_behind(Stage::Retell).await);
    // A day later it is over; the clock is moved by what is said then.
    memory.say(2, "Hello again.").await;
    memory.advise(Stage::Retell, told).await;
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
        memory
            .advise(Stage::Retell, model(&memory, summary(title, text)))
            .await;
        let episodes = memory.episodes().await;
        assert!(episodes.contains(&by_rules[0]), "{title}: {text}");
    }
}

/// A model that says the same whatever it is asked, and how often it was.
fn counted(memory: &Memory, says: &'static str) -> (Adviser, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let exchange = endpoint(move |_, _| {
        count.fetch_add(1, Ordering::SeqCst);
        Scripted::Says(says.to_owned())
    });
    (over(memory, exchange), asked)
}

#[tokio::test]
async fn a_useless_reply_is_an_answer_and_is_not_asked_for_at_every_write() {
    let mut memory = Memory::new().await;
    memory.say_all(1, &chat()).await;
    memory
        .say_all(2, &["Which trains go to Oslo?".to_owned()])
        .await;
    memory.cut().await;
    // Both are over, and a third one goes on.
    memory.say(3, "Hello again.").await;
    memory.cut().await;
    let (model, asked) = counted(&memory, "I would rather not.");
    memory.advise(Stage::Retell, model.clone()).await;
    let once = asked.load(Ordering::SeqCst);
    assert!(once > 0);
    for word in ["One", "Two", "Three"] {
        memory.say(3, &format!("{word} more thing.")).await;
        memory.cut().await;
        memory.advise(Stage::Retell, model.clone()).await;
    }
    assert_eq!(asked.load(Ordering::SeqCst), once);
    assert!(memory.is_behind(Stage::Retell).await, "the last may go on");
    // How far it came is stored.
    memory.restart();
    memory.advise(Stage::Retell, model).await;
    assert_eq!(asked.load(Ordering::SeqCst), once);
}

#[tokio::test]
async fn while_a_model_is_down_the_rules_are_in_use_and_it_is_asked_when_it_is_back() {
    let memory = Memory::new().await;
    memory.say_all(1, &chat()).await;
    memory.cut().await;
    let by_rules = memory.episodes().await;
    memory.say(2, "Hello again.").await;
    let down = Scripted::Status(503, "busy".into(), None);
    memory.advise(Stage::Retell, model(&memory, down)).await;
    assert!(memory.episodes().await.contains(&by_rules[0]));
    assert!(memory.is_behind(Stage::Retell).await);
    let back = summary(
        "Water for the roses",
        "Ben says the roses need water every Monday.",
    );
    memory.advise(Stage::Retell, model(&memory, back)).await;
    assert!(!memory.episodes().await.contains(&by_rules[0]));
}

/// A caller undoes what was written last; the episode as it is then.
async fn reverted(memory: &Memory, written: &Derivation) -> Derivation {
    let call = Context::new(home().tenant, Duration::from_mins(1));
    let space = home().space;
    let reverting = memory.refresher.revert(&call, &space, written.change);
    reverting.await.unwrap();
    last(memory, written).await
}

async fn last(memory: &Memory, episode: &Derivation) -> Derivation {
    let mut versions = memory.store.versions(&home(), episode.id).await.unwrap();
    versions.pop().unwrap()
}

#[tokio::test]
async fn words_that_a_caller_undid_stay_undone_until_the_turns_change() {
    let memory = Memory::new().await;
    memory.say_all(1, &chat()).await;
    memory.cut().await;
    let by_rules = memory.episodes().await.remove(0);
    memory.say(2, "Hello again.").await;
    let told = model(
        &memory,
        summary(
            "Water for the roses",
            "Ben says the roses need water every Monday.",
        ),
    );
    memory.advise(Stage::Retell, told.clone()).await;
    let retold = last(&memory, &by_rules).await;
    assert_ne!(retold.body, by_rules.body);
    let undone = reverted(&memory, &retold).await;
    assert_eq!(undone.body, by_rules.body);
    memory.say(3, "Hello once more.").await;
    memory.cut().await;
    memory.advise(Stage::Retell, told.clone()).await;
    assert_eq!(last(&memory, &by_rules).await, undone);
    // What is said in its session is news.
    memory
        .say(1, "The roses need water every Monday and every Friday.")
        .await;
    memory.cut().await;
    memory.say(4, "Hello.").await;
    memory.advise(Stage::Retell, told).await;
    let grown = last(&memory, &by_rules).await;
    assert_eq!(grown.turns.len(), 3);
    assert_eq!(grown.episode().unwrap().title, "Water for the roses");
}

/// An episode that a caller undid as a whole.
async fn gone() -> (Memory, Derivation) {
    let memory = Memory::new().await;
    memory.say_all(1, &chat()).await;
    memory.cut().await;
    let cut = memory.episodes().await.remove(0);
    let gone = reverted(&memory, &cut).await;
    assert!(gone.is_withdrawn());
    (memory, gone)
}

#[tokio::test]
async fn an_episode_that_a_caller_undid_stays_away() {
    let (memory, gone) = gone().await;
    // Its session goes on with something else, a week later.
    memory.say_in(1, 8, "Which trains go to Oslo?").await;
    memory.cut().await;
    assert_eq!(memory.episodes().await.len(), 1);
    assert_eq!(last(&memory, &gone).await, gone);
}

#[tokio::test]
async fn an_episode_that_a_caller_undid_comes_back_with_other_turns() {
    let (memory, gone) = gone().await;
    memory
        .say(1, "The roses need water every Monday and every Friday.")
        .await;
    memory.cut().await;
    let back = last(&memory, &gone).await;
    assert!(!back.is_withdrawn());
    assert_eq!(back.turns.len(), 3);
}
