//! Memory that stays current: what changes is updated, what does not change is left alone, and nothing is lost.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use memfleet_agents_together::Memory;
use memfleet_domain::derivation::Status;
use memfleet_domain::time::AsOf;
use memfleet_ports::conformance::samples::{home, instant};
use memfleet_ports::context::Context;
use memfleet_ports::knowledge::{ChangeFilter, Knowledge};
use memfleet_ports::knowledge_api::{Correction, UpdateRequest};
use memfleet_ports::refresher::Refresher;

fn context() -> Context {
    Context::new(home().tenant, Duration::from_mins(1))
}

#[tokio::test]
async fn two_values_stand_side_by_side_until_one_is_taken_back() {
    let memory = Memory::new().await;
    memory.say(1, "I live in Rome.").await;
    memory.say(10, "Big news: I moved to Oslo!").await;
    memory.say(12, "I live in Oslo now.").await;
    let known = memory.known(13).await;
    assert!(
        known.contains(&"Ada lives in Rome.".to_owned()),
        "{known:?}"
    );
    assert!(
        known.contains(&"Ada lives in Oslo.".to_owned()),
        "{known:?}"
    );
    assert!(memory.conflicts().await.is_empty());
    memory.say(20, "I don't live in Rome anymore.").await;
    let now = memory.known(21).await;
    assert!(!now.contains(&"Ada lives in Rome.".to_owned()), "{now:?}");
    assert!(now.contains(&"Ada lives in Oslo.".to_owned()), "{now:?}");
    assert!(
        memory
            .known(15)
            .await
            .contains(&"Ada lives in Rome.".to_owned())
    );
    assert_eq!(memory.conflicts().await[0].status, Status::Settled);
}

#[tokio::test]
async fn facts_are_read_as_they_were_known_then() {
    let memory = Memory::new().await;
    memory.say(1, "I live in Rome.").await;
    memory.say(10, "I no longer live in Rome.").await;
    let then = AsOf {
        known_at: Some(instant(5 * 86_400)),
        happened_by: None,
    };
    let facts = memory.facts(then).await;
    assert_eq!((facts.len(), facts[0].valid.end), (1, None));
}

#[tokio::test]
async fn only_the_value_that_is_named_is_taken_back() {
    let memory = Memory::new().await;
    memory.say(1, "I like green apples.").await;
    memory.say(2, "I work for Acme.").await;
    memory.say(3, "I no longer like green.").await;
    memory.say(4, "I no longer work on Sundays.").await;
    memory.say(5, "My brother lives in Rome.").await;
    memory.say(6, "He no longer lives in Rome.").await;
    let known = memory.known(10).await;
    for text in [
        "Ada likes green apples.",
        "Ada works for Acme.",
        "Ada's brother lives in Rome.",
    ] {
        assert!(known.contains(&text.to_owned()), "{text}: {known:?}");
    }
    assert!(memory.conflicts().await.is_empty());
}

#[tokio::test]
async fn an_event_stays_true_after_its_outcome_is_taken_back() {
    let memory = Memory::new().await;
    memory.say(1, "I moved to Lisbon and adopted a cat.").await;
    memory.say(2, "I joined Acme.").await;
    memory.say(10, "I no longer live in Lisbon.").await;
    memory.say(11, "I no longer work for Acme.").await;
    let known = memory.known(12).await;
    for text in ["Ada moved to Lisbon.", "Ada joined Acme."] {
        assert!(known.contains(&text.to_owned()), "{text}: {known:?}");
    }
    assert!(memory.conflicts().await.is_empty());
}

#[tokio::test]
async fn a_state_is_taken_back_in_other_words_too() {
    let memory = Memory::new().await;
    memory.say(1, "I reside in Lisbon.").await;
    memory.say(10, "I no longer live in Lisbon.").await;
    assert_eq!(memory.known(11).await, [""; 0]);
}

#[tokio::test]
async fn what_only_looks_like_a_change_changes_nothing() {
    let memory = Memory::new().await;
    memory.say(1, "I live in Rome.").await;
    for (day, text) in (2..).zip([
        "My brother moved to Oslo.",
        "I might move to Oslo.",
        "If I lived in Oslo, I would ski.",
        "Do you live in Oslo?",
        "I used to live in Oslo.",
        "I live in Rome, Italy.",
        "Ben said: \"I live in Oslo.\"",
    ]) {
        memory.say(day, text).await;
    }
    let known = memory.known(30).await;
    assert!(
        known.contains(&"Ada lives in Rome.".to_owned()),
        "{known:?}"
    );
    assert!(memory.conflicts().await.is_empty());
}

#[tokio::test]
async fn what_was_wrong_from_the_start_never_held() {
    let memory = Memory::new().await;
    memory.say(1, "I live in Rome.").await;
    memory
        .say(2, "Oops, I said I live in Rome but I meant Oslo.")
        .await;
    assert_eq!(memory.known(1).await, [""; 0]);
    assert_eq!(memory.known(3).await, ["Ada lives in Oslo."]);
}

#[tokio::test]
async fn an_ending_ends() {
    let memory = Memory::new().await;
    memory.say(1, "I work for Acme.").await;
    memory.say(5, "I no longer work for Acme.").await;
    assert_eq!(memory.known(6).await, [""; 0]);
    assert_eq!(memory.known(3).await, ["Ada works for Acme."]);
}

#[tokio::test]
async fn a_correction_outranks_what_is_said_later_and_the_conflict_stays_open() {
    let memory = Memory::new().await;
    memory.say(1, "I live in Rome.").await;
    let fact = memory.facts(AsOf::default()).await.remove(0);
    let request = UpdateRequest {
        space: home().space,
        id: fact.id,
        version: Some(1),
        correction: Correction::Says {
            text: Some("Ada lives in Bergen.".into()),
            value: Some("Bergen".into()),
            valid: None,
        },
    };
    memory
        .refresher
        .correct(&context(), &request)
        .await
        .unwrap();
    memory.settle().await;
    memory.say(9, "I moved to Oslo.").await;
    assert!(
        memory
            .known(10)
            .await
            .contains(&"Ada lives in Bergen.".to_owned())
    );
    assert_eq!(memory.conflicts().await[0].status, Status::Open);
}

#[tokio::test]
async fn an_update_that_was_undone_is_not_done_again() {
    let memory = Memory::new().await;
    memory.say(1, "I live in Rome.").await;
    memory.say(10, "I no longer live in Rome.").await;
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
    assert_eq!(memory.known(12).await, ["Ada lives in Rome."]);
    assert_eq!(memory.conflicts().await[0].status, Status::Dismissed);
}
