//! What was found is judged before it is answered with: what a speaker said last counts, and a query is read in its conversation.
//! No fact is derived here.

use memfleet_domain::ids::SessionId;
use memfleet_ports::assembly::Assembly;
use memfleet_ports::memory::{Memory, NewTurn, RecallRequest};
use memfleet_ports::retriever::{Found, Query};

use crate::assembling::assemble;
use crate::roles::{Node, acme, recall, said};

async fn told(texts: &[&str]) -> Node {
    let node = Node::new().await;
    let turns = texts.iter().map(|text| said(text)).collect();
    node.told("ada", turns).await;
    node
}

async fn ask(node: &Node, request: RecallRequest) -> Found {
    node.gateway.recall(&acme(), request).await.unwrap()
}

fn texts(found: &Found) -> Vec<&str> {
    let hits = found.hits.iter();
    hits.map(|hit| hit.turn.accepted.content.text.as_str())
        .collect()
}

#[tokio::test]
async fn what_was_said_last_stands_before_what_it_tells_otherwise_than() {
    let said = [
        "Our flat is in Rome, and we love living there.",
        "Long story short: Oslo is home these days.",
        "My brother lives in Rome and would never move.",
    ];
    let node = told(&said).await;
    let mut request = recall("ada", "Where do I live, in a flat in Rome?", &[]);
    request.query.k = 2;
    let found = ask(&node, request).await;
    assert_eq!(texts(&found)[..1], [said[1]]);
    let newest = found.hits[0].turn.accepted.id;
    let old = found.hits.iter().find(|hit| hit.newer.is_some());
    assert!(found.hits.len() == 2 && old.is_none_or(|old| old.newer == Some(newest)));
    let block = node
        .gateway
        .assemble(&acme(), assemble("ada", "Where do I live?", 400))
        .await
        .unwrap()
        .block;
    assert!(block.contains("(changed"), "{block}");
}

#[tokio::test]
async fn a_query_for_the_past_is_answered_in_the_order_of_the_search() {
    let node = told(&["I live in Rome.", "I moved to Oslo."]).await;
    let found = ask(&node, recall("ada", "Where did I live before?", &[])).await;
    assert!(found.hits.iter().all(|hit| hit.newer.is_none()));
}

#[tokio::test]
async fn a_pronoun_stands_for_whom_the_conversation_names() {
    let node = Node::new().await;
    let turns = vec![
        said("My sister Mia has a bakery in Porto."),
        said("Ben called about the boat."),
    ];
    node.told("ada", turns).await;
    let chat = |text: &str| NewTurn {
        session: SessionId::new("today").unwrap(),
        ..said(text)
    };
    node.told("ada", vec![chat("I had a long call with my sister Mia.")])
        .await;
    let asked_in = |session: Option<&str>| {
        let request = recall("ada", "What does she have in Porto?", &[]);
        RecallRequest {
            query: Query {
                session: session.map(|name| SessionId::new(name).unwrap()),
                ..request.query
            },
            ..request
        }
    };
    let found = ask(&node, asked_in(Some("today"))).await;
    let understood = found.understood.as_deref().unwrap_or_default();
    assert!(understood.contains("Mia"), "{understood}");
    assert_eq!(texts(&found)[0], "My sister Mia has a bakery in Porto.");
    assert_eq!(ask(&node, asked_in(None)).await.understood, None);
    assert_eq!(ask(&node, asked_in(Some("never"))).await.understood, None);
}
