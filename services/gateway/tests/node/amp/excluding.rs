//! What must not come back: the running conversation, what is too new, what the prompt says.

use memfleet_domain::assembly::{DropReason, Reason};

use super::{assembled, prompted, said_in, session, user};
use crate::assembling::assemble;
use crate::roles::Node;

#[tokio::test]
async fn amp_098_amp_104_the_running_session_and_its_aliases_come_back_only_if_that_is_asked_for() {
    let node = Node::new().await;
    let turns = [
        ("now", "kettle one"),
        ("before", "kettle two"),
        ("other", "kettle three"),
    ];
    let turns = turns.map(|(name, text)| said_in(name, text));
    node.told("ada", turns.to_vec()).await;
    let mut request = assemble("ada", "kettle", 1_000);
    request.query.session = Some(session("now"));
    request.aliases = vec![session("before")];
    let answer = assembled(&node, request.clone()).await;
    let sessions: Vec<_> = answer
        .items
        .iter()
        .map(|item| item.session.as_str())
        .collect();
    assert_eq!(sessions, ["other"]);
    request.policy.exclusion.current_session = Some(true);
    request.exchange = Some(memfleet_domain::ids::ExchangeName::new("another").unwrap());
    assert_eq!(assembled(&node, request).await.items.len(), 3);
}

#[tokio::test]
async fn amp_100_many_turns_of_the_running_session_take_nobodys_place() {
    let node = Node::new().await;
    let mut turns: Vec<_> = (0..600)
        .map(|n| said_in("now", &format!("kettle kettle {n}")))
        .collect();
    turns.push(said_in("other", "the kettle is red"));
    node.told("ada", turns).await;
    let mut request = assemble("ada", "kettle", 1_000);
    (request.query.k, request.query.session) = (1, Some(session("now")));
    let answer = assembled(&node, request).await;
    assert!(answer.block.contains("the kettle is red"), "{answer:?}");
}

#[tokio::test]
async fn amp_101_what_was_recorded_within_the_cutoff_is_left_out() {
    let node = Node::new().await;
    node.told("ada", vec![said_in("a", "the old kettle")]).await;
    node.clock.set(1_000);
    node.told("ada", vec![said_in("b", "the new kettle")]).await;
    node.clock.set(1_030);
    let mut request = assemble("ada", "kettle", 1_000);
    request.policy.exclusion.newer_than_seconds = Some(60);
    let block = assembled(&node, request).await.block;
    assert!(block.contains("old") && !block.contains("new"), "{block}");
}

#[tokio::test]
async fn amp_102_what_the_prompt_says_already_is_left_out_whatever_its_session() {
    let node = Node::new().await;
    let sentence = "My kettle broke on Sunday after nine years of good service";
    let turns = vec![said_in("a", sentence), said_in("b", "My kettle is red")];
    node.told("ada", turns).await;
    let prompt = vec![user(sentence), user("What colour was my kettle?")];
    let answer = assembled(&node, prompted(prompt)).await;
    assert!(!answer.block.contains("nine years"), "{}", answer.block);
    let dropped = answer
        .dropped
        .iter()
        .any(|it| it.reason == DropReason::InPrompt);
    assert!(dropped && answer.block.contains("red"), "{answer:?}");
}

#[tokio::test]
async fn amp_057_a_space_that_was_empty_is_asked_again_by_the_next_request_of_the_exchange() {
    let node = Node::new().await;
    let ask = || {
        let mut request = prompted(vec![user("Where is my kettle?")]);
        request.query.session = Some(session("today"));
        request.policy.failure.policy = None;
        request
    };
    let before = assembled(&node, ask()).await;
    assert_eq!(before.reason, Some(Reason::NoMemory));
    node.told("ada", vec![said_in("monday", "My kettle is in the attic")])
        .await;
    let after = assembled(&node, ask()).await;
    assert!(after.block.contains("attic"), "{after:?}");
}

#[tokio::test]
async fn amp_057_a_space_without_memory_has_none_and_one_that_does_not_exist_is_no_error() {
    let node = Node::new().await;
    let mut request = assemble("nobody", "kettle", 1_000);
    request.policy.failure.policy = None;
    let answer = assembled(&node, request).await;
    assert_eq!(answer.reason, Some(Reason::NoMemory));
    assert!(
        answer.degraded[0].contains("nobody"),
        "{:?}",
        answer.degraded
    );
}
