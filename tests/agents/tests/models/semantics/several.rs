//! In several stories.

use std::sync::{Arc, Mutex};

use memfleet_agents_together::Memory;
use memfleet_openai::testing::{Scripted, endpoint};
use memfleet_ports::knowledge::Stage;
use serde_json::json;

use super::{SAID, fact, found, of_boat, oslo, reply};
use crate::{model, over};

/// Two stories, put together by a model: of the boat, and of the garden.
async fn two_plotted() -> Memory {
    let memory = Memory::without_reader().await;
    memory.say(1, &of_boat(SAID[1])).await;
    let roses = "The roses of the garden want more water than last year.";
    let settled = "They bloom in June. Settled into Bergen at last!";
    memory.say(2, &format!("{roses:<60}{settled:<60}")).await;
    memory.cut().await;
    memory.bind(0).await;
    assert_eq!(memory.narratives().await.len(), 2);
    let exchange = endpoint(|_, body| {
        let is_of_boat = body.to_string().contains("boat");
        let headline = ["The roses", "The boat"][usize::from(is_of_boat)];
        let subplot = json!({"headline": headline, "from": "F1", "to": "F1"});
        Scripted::Says(json!({"subplots": [subplot], "headline": null}).to_string())
    });
    let adviser = over(&memory, exchange);
    memory.advise(Stage::Replot, adviser).await;
    memory
}

#[tokio::test]
async fn a_story_that_the_endpoint_fails_on_holds_up_no_other() {
    for poison in ["Oslo", "Bergen"] {
        let memory = two_plotted().await;
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = asked.clone();
        let exchange = endpoint(move |_, body| {
            let is_of_oslo = body.to_string().contains("Oslo");
            let city = if is_of_oslo { "Oslo" } else { "Bergen" };
            let mut asked = heard.lock().unwrap();
            asked.push(city);
            if city == poison && asked.len() <= 2 {
                return Scripted::Status(500, String::new(), None);
            }
            let quote = format!("Settled into {city}");
            let sentence = format!("Ada settled into {city}.");
            let parts = ["Ada", "settle into", city];
            reply(&[fact("T1", &quote, &sentence, parts)])
        });
        let adviser = over(&memory, exchange);
        let settled = async || {
            let known = memory.known(50).await;
            known.iter().filter(|it| it.contains("settled")).count()
        };
        memory.advise(Stage::Semanticize, adviser.clone()).await;
        assert_eq!(settled().await, 1);
        assert!(memory.is_behind(Stage::Semanticize).await);
        memory.advise(Stage::Semanticize, adviser).await;
        assert_eq!(settled().await, 2);
        assert!(!memory.is_behind(Stage::Semanticize).await);
        // What was answered is not asked again.
        assert_eq!(asked.lock().unwrap().len(), 3, "{poison}");
    }
}

/// A boat, roses, and between them a turn that is of both stories; put together by a model.
async fn shared() -> Memory {
    let memory = Memory::without_reader().await;
    let said = (1..=20).map(|n| match n {
        1 => "The boat needs paint.".to_owned(),
        2 => "The boat and the roses wait. Settled into Oslo at last!".to_owned(),
        3 => "The roses need water.".to_owned(),
        n => format!("Good morning number {n}."),
    });
    memory.say_all(1, &said.collect::<Vec<_>>()).await;
    memory.cut().await;
    memory.bind(40).await;
    memory.say(2, "Hello.").await;
    let story = |headline: &str, turns: [&str; 2]| json!({"headline": headline, "owner": "Ada", "turns": turns});
    let stories = [
        story("The boat", ["T1", "T2"]),
        story("The roses", ["T2", "T3"]),
    ];
    let filler: Vec<_> = (4..=20).map(|n| format!("T{n}")).collect();
    let stories = json!({"stories": stories, "filler": filler}).to_string();
    let binding = model(&memory, Scripted::Says(stories));
    memory.advise(Stage::Rebind, binding).await;
    memory.bind(0).await;
    let exchange = endpoint(|_, body| {
        let body = body.to_string();
        let last = format!("F{}", body.matches(r#"\"id\":\"F"#).count());
        let is_of_boat = body.contains(r#"\"headline\":\"The boat"#);
        let headline = ["The roses wait", "The boat waits"][usize::from(is_of_boat)];
        let subplot = json!({"headline": headline, "from": "F1", "to": last});
        Scripted::Says(json!({"subplots": [subplot], "headline": null}).to_string())
    });
    let plotting = over(&memory, exchange);
    memory.advise(Stage::Replot, plotting).await;
    memory
}

#[tokio::test]
async fn a_turn_that_two_stories_tell_states_a_fact_once() {
    let memory = shared().await;
    let asked = Arc::new(Mutex::new(0));
    let count = asked.clone();
    let exchange = endpoint(move |_, _| {
        *count.lock().unwrap() += 1;
        let mut first = oslo();
        first["turn"] = json!("T1");
        reply(&[first, oslo()])
    });
    let adviser = over(&memory, exchange);
    memory.advise(Stage::Semanticize, adviser).await;
    assert_eq!(*asked.lock().unwrap(), 2);
    assert!(found(&memory).await.is_some());
    assert!(!memory.is_behind(Stage::Semanticize).await);
}
