//! Facts that are statements in their own words, with a language model behind the reader of turns.

mod changing;
mod clauses;
mod settlements;

use std::time::Duration;

use memfleet_agents_together::{Memory, saying};
use memfleet_domain::derivation::{Conflict, Derivation};
use memfleet_domain::fact::Clause;
use memfleet_openai::testing::{Scripted, endpoint, garbage};
use memfleet_ports::conformance::samples::home;
use memfleet_ports::context::Context;
use memfleet_ports::knowledge::Stage;
use memfleet_ports::knowledge_api::{Correction, UpdateRequest};
use memfleet_ports::refresher::Refresher;
use serde_json::Value;

use crate::over;

const DAY: i64 = 86_400;

fn clause_of<'f>(facts: &'f [Derivation], text: &str) -> Option<&'f Clause> {
    saying(facts, text).fact().unwrap().clause.as_ref()
}

/// A caller says that a statement is otherwise.
async fn correct(memory: &Memory, statement: &Derivation, text: &str) -> Derivation {
    let request = UpdateRequest {
        space: home().space,
        id: statement.id,
        version: None,
        correction: Correction::Says {
            text: Some(text.to_owned()),
            value: None,
            valid: None,
        },
    };
    memory.refresher.correct(&call(), &request).await.unwrap()
}

fn call() -> Context {
    Context::new(home().tenant, Duration::from_mins(1))
}

/// Handle of the sentence that a prompt shows with this text.
fn handle(body: &Value, letter: char, text: &str) -> Option<String> {
    let shown = shown(body, letter).into_iter();
    let mut shown = shown.filter(|line| line["text"] == text);
    Some(shown.next()?["id"].as_str()?.to_owned())
}

/// Lines of a prompt with handles of this letter.
fn shown(body: &Value, letter: char) -> Vec<Value> {
    let messages = body["messages"].as_array().into_iter().flatten();
    let texts = messages.filter_map(|said| said["content"].as_str());
    let lines = texts.flat_map(str::lines);
    let lines = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let has_handle = |line: &Value| {
        let id = line["id"].as_str();
        id.is_some_and(|id| id.starts_with(letter))
    };
    lines.filter(has_handle).collect()
}

#[tokio::test]
async fn replies_of_no_use_change_nothing() {
    let memory = Memory::new().await;
    memory.say(1, "I live in Rome. I play the cello.").await;
    memory.say(5, "My cat is called Tom.").await;
    memory.say(6, "My cat is called Tim.").await;
    memory.say(10, "Perhaps I live in Oslo.").await;
    let before: (Vec<Derivation>, Vec<Conflict>) =
        (memory.facts_now().await, memory.conflicts().await);
    for seed in 0..60 {
        let reply = match garbage(seed) {
            // No test waits for these.
            Scripted::Drips(..) | Scripted::Hangs => Scripted::Breaks,
            reply => reply,
        };
        for stage in [Stage::Refine, Stage::Compare, Stage::Review] {
            memory.rewind(stage).await;
            let exchange = endpoint({
                let reply = reply.clone();
                move |_, _| reply.clone()
            });
            memory.advise(stage, over(&memory, exchange)).await;
        }
        memory.settle().await;
        let after = (memory.facts_now().await, memory.conflicts().await);
        assert_eq!(after, before, "{seed}");
    }
}
