//! What a model copies from memory is marked as such when it is captured, with the turn that said it.

use memfleet_domain::access::SpacePattern;
use memfleet_domain::assembly::AuditMode;
use memfleet_domain::policy::Policy;
use memfleet_domain::turn::{Echo, Role, Turn};
use memfleet_ports::assembly::{AssembleRequest, Assembly};
use memfleet_ports::conformance::samples::session;
use memfleet_ports::context::Context;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::ledger::Ledger;
use memfleet_ports::memory::{Memory, NewTurn, RememberRequest};
use memfleet_ports::policies::Policies;
use memfleet_ports::testing::caller;

use crate::administering::call_by;
use crate::assembling::assemble;
use crate::policies::audit;
use crate::roles::{Node, acme, said, space};

const TOLD: &str = "I'm allergic to walnuts.";
const REPLY: &str =
    "No cake, then: you're allergic to walnuts. I have booked the Golden Lion instead.";

fn by_model(in_session: &str, text: &str) -> NewTurn {
    NewTurn {
        session: session(in_session),
        role: Role::Assistant,
        ..said(text)
    }
}

/// A prompt of a session that is given what the space knows of walnuts.
fn asking(in_session: &str, spaces: &[&str]) -> AssembleRequest {
    let mut request = assemble("ada", "walnuts", 500);
    request.query.session = Some(session(in_session));
    request.query.spaces = spaces.iter().map(|name| space(name)).collect();
    request
}

/// A space that knows of the walnuts, and of whom `chat` was given that.
async fn node() -> Node {
    let node = Node::new().await;
    node.told("ada", vec![said(TOLD)]).await;
    node.gateway
        .assemble(&acme(), asking("chat", &["ada"]))
        .await
        .unwrap();
    node
}

async fn told_by(node: &Node, context: &Context, into: &str, turn: NewTurn) -> Turn {
    let request = RememberRequest {
        space: space(into),
        turns: vec![turn],
        idempotency_key: None,
    };
    let receipt = node.gateway.remember(context, request).await.unwrap();
    node.settle().await;
    let ids = [receipt.turns[0].id];
    let scope = acme().scope(&space(into));
    node.store.turns(&scope, &ids).await.unwrap().remove(0)
}

async fn told(node: &Node, turn: NewTurn) -> Turn {
    told_by(node, &acme(), "ada", turn).await
}

async fn source(node: &Node) -> Turn {
    let scope = acme().scope(&space("ada"));
    let all = node
        .store
        .list(&scope, &TurnFilter::default(), 10, None)
        .await;
    let all = all.unwrap().items;
    all.into_iter()
        .find(|turn| turn.accepted.content.text == TOLD)
        .unwrap()
}

async fn assert_nothing_is_marked(node: &Node) {
    let reply = told(node, by_model("chat", REPLY)).await;
    assert!(reply.accepted.echoes.is_empty());
}

fn words(turn: &Turn) -> Vec<&str> {
    let accepted = &turn.accepted;
    let text = |echo: &Echo| &accepted.content.text[echo.start as usize..echo.end as usize];
    accepted.echoes.iter().map(text).collect()
}

#[tokio::test]
async fn an_answer_that_repeats_memory_says_whose_words_they_are() {
    let node = node().await;
    let reply = told(&node, by_model("chat", REPLY)).await;
    assert_eq!(words(&reply), ["you're allergic to walnuts"]);
    assert_eq!(reply.accepted.echoes[0].of, source(&node).await.accepted.id);
    let news = told(&node, by_model("chat", "I am allergic to peanuts, too.")).await;
    assert!(news.accepted.echoes.is_empty());
}

#[tokio::test]
async fn another_agent_of_the_space_repeats_memory_as_well_for_a_while() {
    let node = node().await;
    let reply = told(&node, by_model("another agent's", REPLY)).await;
    assert_eq!(words(&reply).len(), 1);
    node.clock.set(3_700);
    let late = told(&node, by_model("a third one's", REPLY)).await;
    assert!(late.accepted.echoes.is_empty());
    let of_the_session = told(&node, by_model("chat", REPLY)).await;
    assert_eq!(words(&of_the_session).len(), 1);
}

#[tokio::test]
async fn what_a_user_says_again_is_said() {
    let node = node().await;
    let again = NewTurn {
        role: Role::User,
        ..by_model("chat", TOLD)
    };
    assert!(told(&node, again).await.accepted.echoes.is_empty());
}

#[tokio::test]
async fn nothing_is_marked_where_the_policy_says_so() {
    let node = node().await;
    let mut policy = Policy::default();
    policy.capture.echoes = Some(false);
    node.gateway
        .put_policy(&acme(), None, policy, None)
        .await
        .unwrap();
    assert_nothing_is_marked(&node).await;
}

#[tokio::test]
async fn nobody_finds_out_what_a_space_holds_that_the_credential_does_not_reach() {
    let node = Node::new().await;
    node.told("ada", vec![said(TOLD)]).await;
    node.told("bob", vec![said("Bob likes walnuts in his bread.")])
        .await;
    let both = asking("chat", &["ada", "bob"]);
    node.gateway.assemble(&acme(), both).await.unwrap();
    let mut of_bob = caller("acme");
    of_bob.grant.spaces = vec![SpacePattern::new("bob").unwrap()];
    let guess = by_model("chat", "You're allergic to walnuts.");
    let guessed = told_by(&node, &call_by(of_bob), "bob", guess.clone()).await;
    assert!(guessed.accepted.echoes.is_empty());
    let of_all = told_by(&node, &acme(), "bob", guess).await;
    assert_eq!(words(&of_all).len(), 1);
}

#[tokio::test]
async fn without_an_audit_there_is_nothing_to_compare_with() {
    let node = Node::new().await;
    node.told("ada", vec![said(TOLD)]).await;
    audit(&node.gateway, None, AuditMode::Off).await;
    let request = asking("chat", &["ada"]);
    node.gateway.assemble(&acme(), request).await.unwrap();
    assert_nothing_is_marked(&node).await;
}
