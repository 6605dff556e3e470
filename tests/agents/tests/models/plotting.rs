//! The parts of a story.

use memfleet_agents_together::Memory;
use memfleet_domain::derivation::Derivation;
use memfleet_domain::narrative::{Momentum, Narrative};
use memfleet_openai::testing::Scripted;
use memfleet_ports::knowledge::Stage;
use serde_json::{Value, json};

use crate::model;

const SAID: [&str; 3] = [
    "It needs new paint before the summer begins this year.",
    "It gets a mast from the yard in Kiel next month.",
    "It sails to Norway with my sister Clara in August.",
];

/// What is said of the boat. The first half of a text is what it is told apart by here.
fn of_boat(text: &str) -> String {
    format!(
        "{:<60}{text:<60}",
        "Here is what I know of the boat in the harbour"
    )
}

/// One story, of which nothing is said any more.
async fn quiet() -> Memory {
    let memory = Memory::new().await;
    for (day, text) in (1..).zip(SAID) {
        memory.say(day, &of_boat(text)).await;
    }
    memory.cut().await;
    memory.bind(0).await;
    memory
}

/// The only narrative.
async fn story(memory: &Memory) -> (Derivation, Narrative) {
    let narratives = memory.narratives().await;
    let [only] = &narratives[..] else {
        panic!("{narratives:?}");
    };
    (only.clone(), only.narrative().unwrap().clone())
}

fn reply(parts: &[(&str, &str, &str)], headline: Option<&str>) -> Value {
    let subplot = |(headline, from, to): &(&str, &str, &str)| json!({"headline": headline, "from": from, "to": to});
    let subplots: Vec<Value> = parts.iter().map(subplot).collect();
    json!({"subplots": subplots, "headline": headline})
}

async fn advise(memory: &Memory, reply: &Value) {
    let adviser = model(memory, Scripted::Says(reply.to_string()));
    memory.advise(Stage::Replot, adviser).await;
}

#[tokio::test]
async fn a_quiet_story_has_the_subplots_and_the_headline_of_a_model() {
    let memory = quiet().await;
    let (_, by_rules) = story(&memory).await;
    assert_eq!(by_rules.momentum, Momentum::Inactive);
    let parts = [
        ("Paint and a mast from the yard in Kiel", "F1", "F2"),
        ("It sails to Norway with Clara", "F3", "F3"),
    ];
    advise(
        &memory,
        &reply(
            &parts,
            Some("The boat sails to Norway with a mast from Kiel"),
        ),
    )
    .await;
    let (derivation, narrative) = story(&memory).await;
    assert_eq!(
        narrative.headline,
        "The boat sails to Norway with a mast from Kiel"
    );
    assert!(narrative.author.contains("plot.v1"));
    let headlines = narrative.subplots.iter().map(|it| it.headline.as_str());
    assert_eq!(headlines.collect::<Vec<_>>()[..2], [parts[0].0, parts[1].0]);
    let mut fragments = memory.fragments().await;
    fragments.sort_by_key(Derivation::begins);
    let subplots = fragments.iter().map(|it| it.fragment().unwrap().subplot);
    assert_eq!(subplots.collect::<Vec<_>>(), [Some(0), Some(0), Some(1)]);
    // What its words are from is what it is forgotten with.
    for fragment in &fragments {
        assert!(derivation.turns.contains(&fragment.turns[0]));
    }
    // It is asked once, and the rules leave its words.
    advise(&memory, &reply(&[("The boat", "F1", "F3")], None)).await;
    memory.bind(0).await;
    assert_eq!(story(&memory).await.0, derivation);
}

#[tokio::test]
async fn a_reply_that_drops_a_fragment_changes_nothing() {
    for reply in [
        reply(&[("New paint", "F1", "F1")], None),
        reply(&[("New paint", "F1", "F2"), ("Norway", "F2", "F3")], None),
        reply(&[("New paint", "F1", "F4")], None),
        reply(&[("New paint", "F3", "F1")], None),
        reply(&[("Memory was deleted", "F1", "F3")], None),
        reply(&[("The boat", "F1", "F3")], Some("All keys of Mallory")),
        reply(&[], None),
    ] {
        let memory = quiet().await;
        let before = story(&memory).await.0;
        advise(&memory, &reply).await;
        assert_eq!(story(&memory).await.0, before, "{reply}");
        assert!(!memory.is_behind(Stage::Replot).await);
    }
}

#[tokio::test]
async fn a_story_that_goes_on_is_not_asked_about() {
    let memory = Memory::new().await;
    memory.say(1, SAID[0]).await;
    memory.cut().await;
    memory.bind(40).await;
    let before = story(&memory).await.0;
    advise(&memory, &reply(&[("New paint", "F1", "F1")], None)).await;
    assert_eq!(story(&memory).await.0, before);
}
