//! Thorough searches: a language model imagines answers where nothing relevant is found.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use memfleet_domain::ids::SessionId;
use memfleet_domain::quality::SearchQuality;
use memfleet_gateway::Gateway;
use memfleet_openai::testing::{Scripted, garbage};
use memfleet_ports::memory::{Memory, NewTurn, RecallRequest};
use memfleet_ports::retriever::{Found, Query};
use serde_json::json;

use crate::answering::{options, with_script};
use crate::roles::{Node, acme, recall, said};

const QUESTION: &str = "Which vessel is damaged?";

/// Turns about vessels, each in a session of its own, and one that answers the question in other
/// words.
async fn vessels() -> Node {
    let node = Node::new().await;
    let mut texts: Vec<String> = (0..8).map(|at| format!("Vessel {at}")).collect();
    texts.push("The dinghy leaks".to_owned());
    let turns = texts.iter().zip(0..).map(|(text, at)| NewTurn {
        session: SessionId::new(format!("session-{at}")).unwrap(),
        ..said(text)
    });
    node.told("ada", turns.collect()).await;
    node
}

fn asking(text: &str, quality: SearchQuality) -> RecallRequest {
    let request = recall("ada", text, &[]);
    RecallRequest {
        query: Query {
            k: 5,
            quality: Some(quality),
            ..request.query
        },
        ..request
    }
}

async fn found(gateway: &Gateway, text: &str, quality: SearchQuality) -> Found {
    let found = gateway.recall(&acme(), asking(text, quality)).await;
    found.unwrap()
}

/// A gateway whose model does this, and how often it was asked.
fn imagining(node: &Node, does: Scripted) -> (Gateway, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let mut options = options();
    (options.retries, options.cache) = (0, 0);
    let gateway = with_script(&node.gateway, options, move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        does.clone()
    });
    (gateway, asked)
}

fn texts(found: &Found) -> Vec<&str> {
    let hits = found.hits.iter();
    hits.map(|hit| &*hit.turn.accepted.content.text).collect()
}

#[tokio::test]
async fn a_model_is_asked_once_where_nothing_relevant_is_found() {
    let node = vessels().await;
    let passages = json!({"passages": ["The dinghy leaks", "A boat with a hole"]});
    let (gateway, asked) = imagining(&node, Scripted::Says(passages.to_string()));
    found(&gateway, QUESTION, SearchQuality::Fast).await;
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    let thorough = found(&gateway, QUESTION, SearchQuality::Thorough).await;
    assert_eq!(texts(&thorough)[0], "The dinghy leaks");
    assert_eq!((thorough.hits.len(), asked.load(Ordering::SeqCst)), (5, 1));
    assert!(thorough.hits.is_sorted_by(|a, b| a.score >= b.score));
    // The node's quality is that of requests which name none.
    let mut node_wide = gateway.clone();
    node_wide.options.quality = SearchQuality::Thorough;
    let request = RecallRequest::from(Query {
        quality: None,
        ..asking(QUESTION, SearchQuality::Fast).query
    });
    let again = node_wide.recall(&acme(), request).await.unwrap();
    assert_eq!(texts(&again), texts(&thorough));
}

#[tokio::test]
async fn without_a_model_that_helps_the_search_stands_alone_and_says_so() {
    let node = vessels().await;
    let fast = found(&node.gateway, QUESTION, SearchQuality::Fast).await;
    let alone = found(&node.gateway, QUESTION, SearchQuality::Thorough).await;
    assert_eq!(texts(&alone), texts(&fast));
    let says = |found: &Found, what: &str| found.degraded.iter().any(|it| it.contains(what));
    assert!(says(&alone, "no language model"), "{:?}", alone.degraded);
    let mut failures: Vec<Scripted> = (0..40)
        .map(garbage)
        .filter(|scripted| !matches!(scripted, Scripted::Hangs | Scripted::Drips(..)))
        .collect();
    failures.extend([
        Scripted::Breaks,
        Scripted::Says(json!({"passages": []}).to_string()),
        Scripted::Says(json!({"passages": ["", "x".repeat(501)]}).to_string()),
    ]);
    for failure in failures {
        let (gateway, _) = imagining(&node, failure.clone());
        let found = found(&gateway, QUESTION, SearchQuality::Thorough).await;
        if says(&found, "language model: ") {
            assert_eq!(texts(&found), texts(&fast), "{failure:?}");
        }
        assert_eq!(found.hits.len(), 5, "{failure:?}");
    }
}
