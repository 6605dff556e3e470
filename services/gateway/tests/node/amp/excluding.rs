//! What must not come back: the running conversation, what is too new, what the prompt says.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use memfleet_domain::assembly::{Decision, DropReason, FailurePolicy, Reason};
use memfleet_domain::ids::ExchangeName;
use memfleet_domain::{Fault, FaultKind};
use memfleet_gateway::Gateway;
use memfleet_ports::assembly::{AssembledItem, Assembly};
use memfleet_ports::context::Context;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::Memory;
use memfleet_ports::refresher::ForgetRequest;
use memfleet_ports::retriever::{Found, Query, Retriever};
use memfleet_ports::tools::{ToolCall, Tools};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use super::{assembled, prompted, said_in, session, user};
use crate::assembling::assemble;
use crate::roles::{Node, acme, space};
use crate::tools::search;

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
    request.policy.exclusion.running_session = Some(false);
    request.exchange = Some(memfleet_domain::ids::ExchangeName::new("another").unwrap());
    assert_eq!(assembled(&node, request).await.items.len(), 3);
}

#[tokio::test]
async fn amp_100_many_turns_of_the_running_session_take_nobodys_place() {
    let node = Node::new().await;
    let others = (0..20).map(|n| said_in("other", &format!("the kettle has the number {n}")));
    node.told("ada", others.collect()).await;
    for thousand in 0..10 {
        let own = (0..1_000).map(|n| said_in("now", &format!("kettle kettle {thousand} {n}")));
        node.told("ada", own.collect()).await;
    }
    let mut request = assemble("ada", "kettle", 4_000);
    (request.query.k, request.query.session) = (20, Some(session("now")));
    let answer = assembled(&node, request).await;
    let sessions: Vec<_> = answer
        .items
        .iter()
        .map(|item| item.session.as_str())
        .collect();
    assert_eq!(sessions, ["other"; 20]);
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
    assert_eq!(before.reason, Some(Reason::UnknownSpace));
    node.told("ada", vec![said_in("monday", "My kettle is in the attic")])
        .await;
    let after = assembled(&node, ask()).await;
    assert!(after.block.contains("attic"), "{after:?}");
}

#[tokio::test]
async fn amp_057_a_space_without_memory_has_none_and_one_that_does_not_exist_is_no_error() {
    let node = Node::new().await;
    node.told("ada", vec![said_in("a", "kettle")]).await;
    for also in [None, Some("ada")] {
        let mut request = assemble("nobody", "kettle", 1_000);
        request.query.spaces.splice(0..0, also.map(space));
        request.policy.failure.policy = None;
        let answer = assembled(&node, request.clone()).await;
        assert_eq!(answer.decision, Decision::Skipped);
        assert_eq!(answer.reason, Some(Reason::UnknownSpace), "{answer:?}");
        assert!(answer.degraded[0].contains("nobody"), "{answer:?}");
        // Where memory must not fail it is an error, as `Recall` has it.
        request.policy.failure.policy = Some(FailurePolicy::Closed);
        let fault = node.gateway.assemble(&acme(), request).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::NotFound);
    }
}

/// Whatever is told, asked and excluded, by assembling and by a model's own calls.
#[tokio::test]
async fn amp_098_amp_032_nothing_of_an_excluded_session_comes_back_whatever_is_asked() {
    let node = Node::new().await;
    let mut runner = TestRunner::deterministic();
    let mut any = |most: usize| (0..most).new_tree(&mut runner).unwrap().current();
    let words = ["kettle", "boat", "roof", "letter", "garden"];
    let mut turns = Vec::new();
    for n in 0..120 {
        let text = format!("The {} and the {} {n}", words[any(5)], words[any(5)]);
        turns.push(said_in(&format!("s{}", any(8)), &text));
    }
    node.told("ada", turns).await;
    let mut seen = 0;
    for case in 0..40 {
        let excluded: Vec<_> = (0..=any(6)).map(|_| format!("s{}", any(8))).collect();
        let is_out = |item: &AssembledItem| excluded.contains(&item.session);
        let mut request = assemble("ada", words[any(5)], 50 + 40 * any(50) as u32);
        request.query.k = 1 + any(60) as u32;
        request.query.neighbours = any(3) as u32;
        request.query.session = Some(session(&excluded[0]));
        request.aliases = excluded[1..].iter().map(|name| session(name)).collect();
        request.exchange = Some(ExchangeName::new(format!("e{case}")).unwrap());
        let call = ToolCall {
            session: session(&excluded[0]),
            aliases: request.aliases.clone(),
            exchange: ExchangeName::new(format!("t{case}")).unwrap(),
            ..search("c1", words[any(5)])
        };
        let answer = assembled(&node, request).await;
        let result = node.gateway.execute_tool(&acme(), call).await.unwrap();
        seen += answer.items.len() + result.items.len();
        let mut items = answer.items.iter().chain(&result.items);
        assert!(!items.any(is_out), "{excluded:?}: {answer:?} {result:?}");
    }
    assert!(seen > 500, "{seen}");
}

#[tokio::test]
async fn amp_057_a_space_without_memory_is_not_searched() {
    let node = Node::new().await;
    node.told("ada", vec![said_in("a", "kettle")]).await;
    let everything = ForgetRequest {
        space: space("ada"),
        filter: TurnFilter::default(),
        everything: true,
        dry_run: false,
    };
    node.gateway.forget(&acme(), everything).await.unwrap();
    let counting = Arc::new(Counting::default());
    let gateway = Gateway {
        retriever: counting.clone(),
        ..node.gateway.clone()
    };
    for name in ["ada", "nobody"] {
        let mut request = assemble(name, "kettle", 1_000);
        request.policy.failure.policy = None;
        let answer = gateway.assemble(&acme(), request).await.unwrap();
        assert_eq!(answer.reason, Some(Reason::UnknownSpace));
    }
    assert_eq!(counting.0.load(Ordering::SeqCst), 0);
}

/// Counts searches.
#[derive(Default)]
struct Counting(AtomicU32);

#[async_trait]
impl Retriever for Counting {
    async fn search(&self, _: &Context, _: &Query) -> Result<Found, Fault> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(Found::default())
    }
}
