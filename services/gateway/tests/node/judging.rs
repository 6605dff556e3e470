//! Reading of a query in its conversation, and answers on a node without derived facts.

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
async fn later_words_of_the_same_shape_mark_and_move_nothing() {
    for (said, question) in [
        (
            [
                "My favorite color is green.",
                "My favorite team is the Red Wings.",
            ],
            "What is my favorite color?",
        ),
        (
            [
                "Our flat is in Rome.",
                "Long story short: Oslo is home these days.",
            ],
            "Where is our flat?",
        ),
        (
            [
                "My phone is a Fairphone.",
                "I adopted a parrot called Pixel.",
            ],
            "What phone do I have?",
        ),
    ] {
        let node = told(&said).await;
        let found = ask(&node, recall("ada", question, &[])).await;
        assert_eq!(texts(&found)[0], said[0], "{question}");
        assert!(found.hits.iter().all(|hit| hit.outdated.is_none()));
        let request = assemble("ada", question, 400);
        let block = node.gateway.assemble(&acme(), request).await.unwrap().block;
        assert!(said.iter().all(|text| block.contains(text)), "{block}");
        assert!(!block.contains(" ("), "{block}");
    }
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
