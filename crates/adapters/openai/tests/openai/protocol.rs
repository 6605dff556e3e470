//! What is sent, what comes back, and what is remembered of it.

use std::time::Duration;

use memfleet_domain::Scope;
use memfleet_domain::ids::{SpaceId, TenantId};
use memfleet_openai::testing::Scripted;
use memfleet_ports::events::{Event, Events};
use memfleet_ports::language_model::{Agent, LanguageModel, Usage};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::setup::{Model, call, options, says, status, tenant};

fn refused(body: &str) -> Scripted {
    Scripted::Status(400, body.to_owned(), None)
}

#[tokio::test(start_paused = true)]
async fn a_call_goes_to_the_model_of_its_agent_and_its_cost_is_told() {
    let mut options = options();
    options.agents.judge.model = "large".to_owned();
    options.agents.judge.price_in = 2.5;
    options.agents.judge.price_out = 10.0;
    let model = Model::playing(options, &[says("{}")]);
    let reply = model.ask("hello").await.unwrap();
    assert_eq!((&*reply.text, &*reply.model), ("{}", "large"));
    let usage = Usage {
        tokens_in: 100,
        tokens_out: 10,
        micros: 350,
    };
    assert_eq!((reply.usage, reply.cached), (usage, false));
    let sent = &model.sent()[0];
    assert_eq!(sent["model"], "large");
    assert_eq!(sent["temperature"], 0.0);
    assert_eq!(sent["max_tokens"], 2048);
    assert_eq!(
        sent["response_format"]["json_schema"]["schema"],
        json!({"type": "object"})
    );
}

#[tokio::test(start_paused = true)]
async fn an_equal_call_of_the_same_tenant_is_answered_from_the_cache() {
    let model = Model::playing(options(), &[says("one"), says("two")]);
    model.ask("a").await.unwrap();
    let again = model.ask("a").await.unwrap();
    assert_eq!((&*again.text, again.cached), ("one", true));
    assert_eq!(again.usage, Usage::default());
    let other = TenantId::new("other").unwrap();
    let theirs = model.model.complete(&other, &call("a")).await.unwrap();
    assert_eq!((&*theirs.text, theirs.cached), ("two", false));
    assert_eq!(model.ask("b").await.unwrap().text, "two");
}

/// A reply quotes what it was asked about.
#[tokio::test(start_paused = true)]
async fn what_was_said_goes_with_a_turn_that_is_forgotten_and_with_time() {
    let model = Model::playing(options(), &[says("one"), says("two"), says("three")]);
    let (events, stop) = (Events::default(), CancellationToken::new());
    let following = tokio::spawn({
        let (model, events, stop) = (model.model.clone(), events.clone(), stop.clone());
        async move { model.follow(&events, stop).await }
    });
    let forget = async |name: &str| {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let scope = Scope {
            tenant: TenantId::new(name).unwrap(),
            space: SpaceId::new("ada").unwrap(),
        };
        events.announce(Event::Forgotten { scope });
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    assert_eq!(model.ask("a").await.unwrap().text, "one");
    forget("other").await;
    assert_eq!(model.ask("a").await.unwrap().text, "one");
    forget(tenant().as_str()).await;
    assert_eq!(model.ask("a").await.unwrap().text, "two");
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(model.ask("a").await.unwrap().text, "three");
    stop.cancel();
    following.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_was_discarded_is_asked_for_again() {
    let model = Model::playing(options(), &[says("one"), says("two")]);
    model.ask("a").await.unwrap();
    model.model.discard(&tenant(), &call("a"));
    assert_eq!(model.ask("a").await.unwrap().text, "two");
}

#[tokio::test(start_paused = true)]
async fn a_server_without_schemas_is_asked_more_simply_and_that_is_remembered() {
    let model = Model::new(options(), |_, body| {
        match body["response_format"]["type"].as_str() {
            None => says("{}"),
            Some(_) => refused("unknown response format"),
        }
    });
    for text in ["a", "b"] {
        assert_eq!(model.ask(text).await.unwrap().text, "{}");
    }
    let sent = model.sent();
    let forms: Vec<_> = sent
        .iter()
        .map(|sent| sent["response_format"]["type"].as_str())
        .collect();
    assert_eq!(
        forms,
        [Some("json_schema"), Some("json_object"), None, None]
    );
    let last = sent[3]["messages"].as_array().unwrap().last().unwrap();
    let schema = last["content"].as_str().unwrap();
    assert!(schema.contains("{\"type\":\"object\"}"), "{schema}");
}

#[tokio::test(start_paused = true)]
async fn a_server_with_other_parameters_gets_those() {
    let model = Model::new(options(), |_, body| {
        if !body["max_tokens"].is_null() {
            refused("use 'max_completion_tokens' instead")
        } else if !body["temperature"].is_null() {
            refused("'temperature' does not support 0")
        } else {
            says("{}")
        }
    });
    assert_eq!(model.ask("a").await.unwrap().text, "{}");
    let last = &model.sent()[2];
    assert_eq!(last["max_completion_tokens"], 2048);
    assert_eq!(last["response_format"]["type"], "json_schema");
}

#[tokio::test(start_paused = true)]
async fn what_no_dialect_helps_is_not_learned() {
    let model = Model::playing(
        options(),
        &[status(400), status(400), status(400), says("{}")],
    );
    model.ask("a").await.unwrap_err();
    model.ask("a").await.unwrap();
    let form = &model.sent()[3]["response_format"]["type"];
    assert_eq!(form, "json_schema");
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_is_too_long_is_not_sent_again() {
    let model = Model::playing(options(), &[refused("context_length_exceeded")]);
    model.ask("a").await.unwrap_err();
    assert_eq!(model.sent().len(), 1);
}

#[test]
fn every_agent_has_a_model() {
    let model = Model::playing(options(), &[says("{}")]);
    for agent in Agent::ALL {
        assert_eq!(&*model.model.name(agent), "small");
    }
}
