//! What is found for a question where a model reads it and judges what the search finds.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::TryStreamExt;
use memfleet_domain::ids::{DerivationId, SessionId};
use memfleet_gateway::Gateway;
use memfleet_openai::testing::{Scripted, garbage};
use memfleet_ports::conformance::knowledge::{deriving, fragment};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge::{Knowledge, Work};
use memfleet_ports::ledger::Ledger;
use memfleet_ports::memory::{AnswerMode, AnswerPart, AnswerRequest, Memory, NewTurn};
use memfleet_ports::retriever::Query;
use serde_json::{Value, json};

use crate::answering::{ask, options, question, with_script};
use crate::assembling::narrative;
use crate::roles::{Node, acme, call_of, said, space};

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Retriever,
    Consolidator,
    Judge,
    Answer,
}

fn asked(body: &Value) -> Asked {
    let text = body["messages"][0]["content"].as_str().unwrap_or_default();
    if text.contains("prepare a search") {
        Asked::Retriever
    } else if text.contains("choose the stories") {
        Asked::Consolidator
    } else if text.contains("judge what a search") {
        Asked::Judge
    } else {
        Asked::Answer
    }
}

/// Who was asked, and the bodies of the requests.
type Sent = Arc<Mutex<Vec<(Asked, String)>>>;

/// A gateway whose model does this, and what it was sent.
fn playing(
    gateway: &Gateway,
    script: impl Fn(Asked, usize) -> Scripted + Send + Sync + 'static,
) -> (Gateway, Sent) {
    let sent: Sent = Arc::default();
    let (heard, judged) = (sent.clone(), AtomicUsize::new(0));
    let mut options = options();
    options.retries = 0;
    let gateway = with_script(gateway, options, move |body| {
        let asked = asked(body);
        heard.lock().unwrap().push((asked, body.to_string()));
        let round = match asked {
            Asked::Judge => judged.fetch_add(1, Ordering::SeqCst),
            _ => 0,
        };
        script(asked, round)
    });
    (gateway, sent)
}

fn verdict(relevant: &[&str], missing: &[&str]) -> Scripted {
    let sufficient = missing.is_empty();
    let verdict = json!({"relevant": relevant, "sufficient": sufficient, "missing": missing});
    Scripted::Says(verdict.to_string())
}

fn reading(query: &str, count: u32) -> Scripted {
    let reading = json!({
        "query": query, "fine": false, "abstract": false, "event": false, "atomic": true, "count": count,
    });
    Scripted::Says(reading.to_string())
}

/// Ten turns about a garden and, in another session, one about a boat.
async fn garden() -> Node {
    let node = Node::new().await;
    let garden = |at: usize| said(&format!("The garden needs water, bed number {at}."));
    let mut turns: Vec<_> = (0..10).map(garden).collect();
    turns.push(NewTurn {
        session: SessionId::new("boat").unwrap(),
        ..said("The dinghy leaks near its keel.")
    });
    node.told("ada", turns).await;
    node
}

fn few(name: &str, text: &str) -> AnswerRequest {
    let asked = question(name, text);
    AnswerRequest {
        query: Query {
            k: 3,
            ..asked.query
        },
        ..asked
    }
}

const GARDEN: &str = "What does the garden need?";

#[tokio::test]
async fn what_a_judge_misses_is_looked_for() {
    let node = garden().await;
    let (gateway, sent) = playing(&node.gateway, |asked, round| match (asked, round) {
        (Asked::Judge, 0) => verdict(&["C1"], &["dinghy leaks keel"]),
        (Asked::Judge, _) => verdict(&["C1", "C2"], &[]),
        _ => Scripted::Says("It leaks [T4].".to_owned()),
    });
    let answer = ask(&gateway, few("ada", GARDEN)).await.unwrap();
    assert_eq!(answer.end.retries, 1);
    let asked: Vec<Asked> = sent
        .lock()
        .unwrap()
        .iter()
        .map(|(asked, _)| *asked)
        .collect();
    assert_eq!(asked, [Asked::Judge, Asked::Judge, Asked::Answer]);
    let shown = sent
        .lock()
        .unwrap()
        .iter()
        .map(|(_, body)| body.contains("dinghy leaks near"))
        .collect::<Vec<_>>();
    assert_eq!(shown, [false, true, true]);
}

#[tokio::test]
async fn it_is_looked_for_twice_at_most() {
    let node = garden().await;
    let (gateway, sent) = playing(&node.gateway, |asked, round| match asked {
        Asked::Judge => verdict(&[], &[["dinghy", "garden bed", "water"][round]]),
        _ => Scripted::Says("NOT_IN_MEMORY".to_owned()),
    });
    let answer = ask(&gateway, few("ada", GARDEN)).await.unwrap();
    assert_eq!(answer.end.retries, 2);
    let sent = sent.lock().unwrap();
    assert_eq!(
        sent.iter()
            .filter(|(asked, _)| *asked == Asked::Judge)
            .count(),
        3
    );
}

#[tokio::test]
async fn a_judge_of_no_use_leaves_the_search_as_it_is() {
    let node = garden().await;
    let by_rules = {
        let (gateway, _) = playing(&node.gateway, |_, _| verdict(&[], &[]));
        let rules = AnswerRequest {
            mode: AnswerMode::Rules,
            ..few("ada", GARDEN)
        };
        ask(&gateway, rules).await.unwrap()
    };
    for scripted in [
        Scripted::Hangs,
        Scripted::Status(500, "no".into(), None),
        Scripted::Says("relevant: all".into()),
        verdict(&["C99", "T1", "*"], &[]),
    ] {
        let played = scripted.clone();
        let (gateway, sent) = playing(&node.gateway, move |asked, _| match asked {
            Asked::Judge => played.clone(),
            _ => Scripted::Says("Water [T1].".to_owned()),
        });
        let call = call_of("acme", Duration::from_secs(4));
        let parts = gateway.answer(&call, few("ada", GARDEN)).await.unwrap();
        let parts: Vec<AnswerPart> = parts.try_collect().await.unwrap();
        let Some(AnswerPart::End(end)) = parts.last() else {
            panic!("{parts:?}")
        };
        assert_eq!(end.retries, 0);
        assert_eq!(end.looked_at, by_rules.end.looked_at, "{scripted:?}");
        assert!(
            sent.lock()
                .unwrap()
                .iter()
                .any(|(asked, _)| *asked == Asked::Judge)
        );
    }
}

/// A conversation about a boat, and a question in it.
async fn conversation() -> (Node, AnswerRequest) {
    let node = garden().await;
    let mut boat = said("Let us talk about the dinghy.");
    boat.session = SessionId::new("harbour").unwrap();
    node.told("ada", vec![boat]).await;
    let asked = few("ada", "Where does it leak?");
    let asked = AnswerRequest {
        query: Query {
            session: SessionId::new("harbour").ok(),
            ..asked.query
        },
        ..asked
    };
    (node, asked)
}

#[tokio::test]
async fn a_model_reads_a_question_in_its_conversation() {
    let (node, asked) = conversation().await;
    let (gateway, sent) = playing(&node.gateway, |asked, _| match asked {
        Asked::Retriever => reading("Where does the dinghy leak?", 7),
        Asked::Judge => verdict(&[], &[]),
        Asked::Consolidator | Asked::Answer => Scripted::Says("Near its keel [T1].".to_owned()),
    });
    let answer = ask(&gateway, asked).await.unwrap();
    assert_eq!(
        answer.end.understood.as_deref(),
        Some("Where does the dinghy leak?")
    );
    assert_eq!(answer.end.looked_at, 7);
    let sent = sent.lock().unwrap();
    assert!(
        sent.iter().all(|(asked, body)| *asked == Asked::Retriever
            || body.contains("Where does the dinghy leak?"))
    );
}

#[tokio::test]
async fn a_reading_with_words_that_nobody_said_is_not_taken() {
    let (node, asked) = conversation().await;
    for query in ["Where does Zorblax hide the gold?", "Forget everything"] {
        let (gateway, _) = playing(&node.gateway, move |asked, _| match asked {
            Asked::Retriever => reading(query, 100),
            Asked::Judge => verdict(&[], &[]),
            Asked::Consolidator | Asked::Answer => Scripted::Says("Near its keel [T1].".to_owned()),
        });
        let answer = ask(&gateway, asked.clone()).await.unwrap();
        assert_ne!(answer.end.understood.as_deref(), Some(query));
        assert_eq!(answer.end.looked_at, 3);
    }
}

#[tokio::test]
async fn rules_read_where_a_model_does_not() {
    let (node, asked) = conversation().await;
    let (gateway, _) = playing(&node.gateway, |asked, _| match asked {
        Asked::Retriever => Scripted::Status(503, "busy".into(), None),
        Asked::Judge => verdict(&[], &[]),
        Asked::Consolidator | Asked::Answer => Scripted::Says("Near its keel [T1].".to_owned()),
    });
    let answer = ask(&gateway, asked).await.unwrap();
    assert!(
        answer.end.degraded[0].ends_with("; read by rules"),
        "{:?}",
        answer.end
    );
}

#[tokio::test]
async fn whatever_a_model_says_to_the_three_of_them_an_answer_ends() {
    let (node, asked) = conversation().await;
    for seed in 0..30 {
        let said = AtomicUsize::new(0);
        let (gateway, sent) = playing(&node.gateway, move |_, _| {
            garbage(seed * 1_000 + said.fetch_add(1, Ordering::SeqCst) as u64)
        });
        let answer = ask(&gateway, asked.clone()).await.unwrap();
        let end = &answer.end;
        assert!(end.looked_at >= 3 && end.retries <= 2, "{seed}: {end:?}");
        let understood = end.understood.as_deref().unwrap_or_default();
        assert!(
            understood.is_empty() || understood.contains("leak"),
            "{seed}: {understood}"
        );
        let judged = |(asked, _): &&(Asked, String)| *asked == Asked::Judge;
        assert!(sent.lock().unwrap().iter().filter(judged).count() <= 3 * 2);
    }
}

/// The same, where the dinghy and a bed of the garden are stories.
async fn with_stories() -> Node {
    let node = garden().await;
    let scope = acme().scope(&space("ada"));
    let all = node
        .store
        .list(&scope, &TurnFilter::default(), 100, None)
        .await
        .unwrap();
    let rewrites = all.items.iter().filter(|turn| {
        let text = &turn.accepted.content.text;
        text.contains("dinghy") || text.contains("number 0")
    });
    let rewrites = rewrites.map(|turn| {
        let id = DerivationId::of_narrative(turn.accepted.id);
        deriving(&[
            &narrative(&turn.accepted, id),
            &fragment(&turn.accepted, id),
        ])
    });
    let work = Work {
        rewrites: rewrites.collect(),
        ..Work::default()
    };
    node.store.apply(&scope, work).await.unwrap();
    node
}

#[tokio::test]
async fn what_the_chosen_stories_tell_joins_what_was_found() {
    let node = with_stories().await;
    let (gateway, sent) = playing(&node.gateway, |asked, _| match asked {
        Asked::Consolidator => Scripted::Says(json!({"stories": ["S1", "S2"]}).to_string()),
        Asked::Judge => verdict(&["C1"], &[]),
        _ => Scripted::Says("Water [T1].".to_owned()),
    });
    let answer = ask(&gateway, few("ada", GARDEN)).await.unwrap();
    assert!(answer.end.degraded.is_empty(), "{:?}", answer.end.degraded);
    let sent = sent.lock().unwrap();
    let asked: Vec<Asked> = sent.iter().map(|(asked, _)| *asked).collect();
    assert_eq!(asked, [Asked::Consolidator, Asked::Judge, Asked::Answer]);
    assert!(sent[1].1.contains("dinghy leaks near"), "{}", sent[1].1);
}

#[tokio::test]
async fn without_a_choice_the_search_stands_alone() {
    for reply in [
        json!({"stories": []}),
        json!({"stories": ["S9"]}),
        json!("no"),
    ] {
        let node = with_stories().await;
        let said = reply.to_string();
        let (gateway, sent) = playing(&node.gateway, move |asked, _| match asked {
            Asked::Consolidator => Scripted::Says(said.clone()),
            Asked::Judge => verdict(&["C1"], &[]),
            _ => Scripted::Says("Water [T1].".to_owned()),
        });
        let answer = ask(&gateway, few("ada", GARDEN)).await.unwrap();
        let is_useless = reply != json!({"stories": []});
        let is_told = answer
            .end
            .degraded
            .iter()
            .any(|it| it.contains("stories chosen by rules"));
        assert_eq!(is_told, is_useless, "{reply} {:?}", answer.end.degraded);
        let sent = sent.lock().unwrap();
        let judged = sent
            .iter()
            .find(|(asked, _)| *asked == Asked::Judge)
            .unwrap();
        assert!(!judged.1.contains("dinghy leaks near"), "{reply}");
    }
}
