//! Memory that stays current: what changes is updated, what does not change is left alone, and nothing is lost.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use memfleet_agents_together::Memory;
use memfleet_domain::derivation::Status;
use memfleet_domain::time::AsOf;
use memfleet_ports::conformance::samples::{home, instant};
use memfleet_ports::context::Context;
use memfleet_ports::knowledge::{ChangeFilter, Knowledge};
use memfleet_ports::refresher::Refresher;

fn context() -> Context {
    Context::new(home().tenant, Duration::from_mins(1))
}

#[tokio::test]
async fn facts_are_read_as_they_were_known_then() {
    let memory = Memory::new().await;
    memory.say(1, "I live in Rome.").await;
    memory.say(10, "I live in Oslo.").await;
    let then = AsOf {
        known_at: Some(instant(5 * 86_400)),
        happened_by: None,
    };
    let facts = memory.facts(then).await;
    assert_eq!((facts.len(), facts[0].valid.end), (1, None));
}

#[tokio::test]
async fn an_update_that_was_undone_is_not_done_again() {
    let memory = Memory::new().await;
    memory.say(1, "I live in Rome.").await;
    memory.say(10, "I live in Oslo.").await;
    let changes = memory
        .store
        .changes(&home(), &ChangeFilter::default(), 1, None)
        .await;
    let update = changes.unwrap().items.remove(0).change.id;
    let space = home().space;
    memory
        .refresher
        .revert(&context(), &space, update)
        .await
        .unwrap();
    memory.settle().await;
    memory.say(11, "It rains.").await;
    assert_eq!(
        memory.known(12).await,
        ["I live in Rome.", "I live in Oslo."]
    );
    assert_eq!(memory.conflicts().await[0].status, Status::Dismissed);
}
