//! Questions answered from memory, by quotations and by a model that plays a script.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use memfleet_domain::ids::{SpaceId, TurnId};
use memfleet_domain::{Fault, FaultKind};
use memfleet_gateway::Gateway;
use memfleet_openai::testing::{Scripted, endpoint, garbage};
use memfleet_openai::{MemoryLedger, OpenAi, Options};
use memfleet_ports::assembly::Assembly;
use memfleet_ports::conformance::samples::instant;
use memfleet_ports::knowledge::{Applied, Position, Progress, Stage, Work};
use memfleet_ports::memory::{
    AnswerEnd, AnswerMode, AnswerPart, AnswerRequest, Citation, Memory, Outcome,
};
use memfleet_ports::retriever::Query;
use memfleet_prompts::{Adviser, Press};
use serde_json::Value;

use crate::assembling::assemble;
use crate::knowing::{Moved, moved};
use crate::roles::{Node, acme, recall, said, space};

/// A question of a space.
pub fn question(name: &str, text: &str) -> AnswerRequest {
    let request = recall(name, text, &[]);
    AnswerRequest {
        query: Query {
            k: 20,
            ..request.query
        },
        wait_for: request.wait_for,
        mode: AnswerMode::Auto,
    }
}

/// An answer that has arrived.
#[derive(Debug)]
pub struct Answer {
    pub text: String,
    pub cited: Vec<Citation>,
    pub end: AnswerEnd,
}

impl Answer {
    pub fn turns(&self) -> Vec<TurnId> {
        self.cited.iter().map(|citation| citation.turn).collect()
    }
}

/// Asks once the agents have read everything, as they have on a node where they run.
pub async fn ask(gateway: &Gateway, request: AnswerRequest) -> Result<Answer, Fault> {
    all_read(gateway, &request.query.spaces).await;
    ask_at_once(gateway, request).await
}

/// Notes for agents that do not run here that they have read what spaces hold.
async fn all_read(gateway: &Gateway, spaces: &[SpaceId]) {
    for space in spaces {
        let scope = acme().scope(space);
        for stage in [Stage::Derive, Stage::Judge, Stage::Settle] {
            let position = gateway.knowledge.position(&scope, stage).await.unwrap();
            let Some(Position { reached, head }) = position.filter(|it| it.reached < it.head)
            else {
                continue;
            };
            let (now, until) = (instant(0), instant(10));
            let claimed = gateway.knowledge.claim(&scope, stage, now, until).await;
            assert_eq!(claimed.unwrap(), Some(reached));
            let progress = Some(Progress {
                stage,
                from: reached,
                to: head,
            });
            let work = Work {
                progress,
                ..Work::default()
            };
            let applied = gateway.knowledge.apply(&scope, work).await.unwrap();
            assert_ne!(applied, Applied::Stale);
        }
    }
}

async fn ask_at_once(gateway: &Gateway, request: AnswerRequest) -> Result<Answer, Fault> {
    let parts = gateway.answer(&acme(), request).await?;
    let mut parts: Vec<AnswerPart> = parts.try_collect().await?;
    let Some(AnswerPart::End(end)) = parts.pop() else {
        panic!("an answer has an end: {parts:?}")
    };
    let (mut text, mut cited) = (String::new(), Vec::new());
    for part in parts {
        match part {
            AnswerPart::Text(more) => text.push_str(&more),
            AnswerPart::Citation(citation) => cited.push(*citation),
            AnswerPart::End(end) => panic!("an answer has one end: {end:?}"),
        }
    }
    Ok(Answer { text, cited, end })
}

const WHERE: &str = "Ada moved?";

/// The answer to it without a language model.
const OSLO: &str = "2023-11-14, Ada: \"I moved to Oslo.\"";

/// A judge that has no more to ask for.
const CONTENT: &str = r#"{"relevant": [], "sufficient": true, "missing": []}"#;

/// What a model was sent.
type Sent = Arc<Mutex<Vec<String>>>;

/// The same gateway with a model that plays a script where it is to answer; the searches before it are enough for it.
fn with_model(
    gateway: &Gateway,
    options: Options,
    script: impl Fn(usize) -> Scripted + Send + Sync + 'static,
) -> (Gateway, Sent) {
    let sent = Sent::default();
    let heard = sent.clone();
    let answered = AtomicUsize::new(0);
    let gateway = with_script(gateway, options, move |body| {
        if body["stream"] != true {
            return Scripted::Says(CONTENT.to_owned());
        }
        heard.lock().unwrap().push(body.to_string());
        script(answered.fetch_add(1, Ordering::SeqCst))
    });
    (gateway, sent)
}

/// The same gateway with a model that does with each request what the script says.
pub fn with_script(
    gateway: &Gateway,
    options: Options,
    script: impl Fn(&Value) -> Scripted + Send + Sync + 'static,
) -> Gateway {
    let exchange = endpoint(move |_, body| script(body));
    let ledger = Arc::new(MemoryLedger::default());
    let model = OpenAi::over(exchange, options, ledger, gateway.clock.clone()).unwrap();
    let author = Adviser {
        model: Arc::new(model),
        press: Arc::new(Press::new([7; 32])),
    };
    Gateway {
        author: Some(author),
        ..gateway.clone()
    }
}

pub fn options() -> Options {
    let mut options = Options::new("http://model.test/v1", "small");
    let agents = &mut options.agents;
    for agent in [&mut agents.retriever, &mut agents.judge, &mut agents.answer] {
        agent.timeout = Duration::from_millis(400);
    }
    options
}

fn saying(moved: &Moved, text: &str) -> (Gateway, Sent) {
    let text = text.to_owned();
    with_model(&moved.node.gateway, options(), move |_| {
        Scripted::Says(text.clone())
    })
}

#[tokio::test]
async fn an_answer_that_came_before_its_facts_says_so() {
    let node = Node::new().await;
    let receipt = node.told("ada", vec![said("I live in Rome.")]).await;
    let behind = ["facts: 1 change is not read yet in ada"];
    let began = tokio::time::Instant::now();
    let answer = ask_at_once(&node.gateway, question("ada", WHERE)).await;
    assert_eq!(answer.unwrap().end.degraded, behind);
    assert!(began.elapsed() < Duration::from_secs(5));
    let mut after = question("ada", WHERE);
    after.wait_for = vec![receipt.batch];
    let call = acme().at_most(Duration::from_secs(1));
    let parts = node.gateway.answer(&call, after).await.unwrap();
    let parts: Vec<AnswerPart> = parts.try_collect().await.unwrap();
    let Some(AnswerPart::End(end)) = parts.last() else {
        panic!("an answer has an end: {parts:?}")
    };
    assert_eq!(end.degraded, behind);
    let mut block = assemble("ada", "Where does Ada live?", 200);
    block.wait_for = vec![receipt.batch];
    let assembled = node.gateway.assemble(&call, block).await.unwrap();
    assert!(assembled.block.contains("Rome"), "{}", assembled.block);
    assert_eq!(assembled.degraded, behind);
}

#[tokio::test]
async fn an_answer_waits_for_facts_that_come() {
    let node = Node::new().await;
    node.told("ada", vec![said("I live in Rome.")]).await;
    let reading = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        all_read(&node.gateway, &[space("ada")]).await;
    };
    let asking = ask_at_once(&node.gateway, question("ada", WHERE));
    let (answer, ()) = tokio::join!(asking, reading);
    assert_eq!(answer.unwrap().end.degraded, [""; 0]);
}

#[tokio::test]
async fn a_quotation_cites_the_bytes_that_it_quotes() {
    let node = Node::new().await;
    let rest = "It rained again. ".repeat(10);
    let told = said(&format!(
        "Grüße aus Bodø! The ferry was late because of the storm. {rest}"
    ));
    let receipt = node.told("ada", vec![said("Hello."), told]).await;
    let answer = ask(&node.gateway, question("ada", "Ferry late?")).await;
    let answer = answer.unwrap();
    let [citation] = answer.cited.as_slice() else {
        panic!("{answer:?}")
    };
    assert_eq!(citation.turn, receipt.turns[1].id);
    assert_eq!(citation.quote, "The ferry was late because of the storm.");
    assert!(answer.text.contains(&citation.quote));
    assert_eq!(citation.evidence, (19, 59));
}

#[tokio::test]
async fn a_model_that_is_demanded_must_be_there() {
    let moved = moved().await;
    let demanded = AnswerRequest {
        mode: AnswerMode::Model,
        ..question("ada", WHERE)
    };
    let fault = ask(&moved.node.gateway, demanded).await.unwrap_err();
    assert_eq!(
        (fault.kind, fault.reason.as_ref()),
        (FaultKind::FailedPrecondition, "MODEL_NOT_CONFIGURED")
    );
}

#[tokio::test]
async fn a_model_is_shown_turns_in_order_of_time_and_cites_them() {
    let moved = moved().await;
    let (gateway, sent) = saying(&moved, "She lives in Oslo [T2], not in Rome [T1, T9].");
    let answer = ask(&gateway, question("ada", WHERE)).await.unwrap();
    assert_eq!(answer.text, "She lives in Oslo , not in Rome .");
    assert_eq!(answer.turns(), [moved.oslo.turns[0], moved.rome.turns[0]]);
    assert_eq!(answer.cited[0].quote, "I moved to Oslo.");
    assert_eq!(answer.cited[0].evidence, (0, 0));
    let model = answer.end.model.unwrap();
    assert_eq!(
        (model.model.as_str(), model.prompt.as_str()),
        ("small", "answer.v1")
    );
    assert_eq!((answer.end.looked_at, answer.end.dropped_citations), (2, 1));
    assert_eq!(answer.end.degraded, Vec::<String>::new());
    let sent = sent.lock().unwrap()[0].clone();
    assert!(sent.contains("Ada lives in Oslo.") && !sent.contains("Ada lives in Rome."));
}

#[tokio::test]
async fn quotations_ask_no_model() {
    let moved = moved().await;
    let (gateway, sent) = saying(&moved, "Oslo [T2].");
    let quoted = AnswerRequest {
        mode: AnswerMode::Rules,
        ..question("ada", WHERE)
    };
    let answer = ask(&gateway, quoted).await.unwrap();
    assert_eq!(answer.text, OSLO);
    assert_eq!(sent.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn an_answer_that_cites_nothing_says_so_and_a_model_may_abstain() {
    let moved = moved().await;
    let (gateway, _) = saying(&moved, "In Atlantis [T7].");
    let answer = ask(&gateway, question("ada", WHERE)).await.unwrap();
    assert_eq!(answer.end.outcome, Outcome::Answered);
    assert!(answer.end.degraded[0].starts_with("citations: "));
    assert_eq!(answer.end.dropped_citations, 1);
    let (gateway, _) = saying(&moved, "NOT_IN_MEMORY");
    let answer = ask(&gateway, question("ada", WHERE)).await.unwrap();
    assert_eq!(answer.end.outcome, Outcome::Abstained);
    assert!(answer.end.model.is_some() && answer.text.is_empty());
    assert_eq!(answer.end.degraded, Vec::<String>::new());
}

#[tokio::test]
async fn quotations_answer_for_a_model_that_says_nothing() {
    let moved = moved().await;
    for scripted in [
        Scripted::Hangs,
        Scripted::Breaks,
        Scripted::Declines,
        Scripted::Says(String::new()),
        Scripted::Status(401, "no".to_owned(), None),
    ] {
        let played = scripted.clone();
        let (gateway, _) = with_model(&moved.node.gateway, options(), move |_| played.clone());
        let answer = ask(&gateway, question("ada", WHERE)).await.unwrap();
        assert_eq!(answer.text, OSLO, "{scripted:?}");
        assert_eq!(answer.end.model, None);
        let missing = &answer.end.degraded[0];
        assert!(missing.starts_with("language model: "), "{missing}");
        assert!(missing.ends_with("; answered by quotations"), "{missing}");
        let demanded = AnswerRequest {
            mode: AnswerMode::Model,
            ..question("ada", WHERE)
        };
        let fault = ask(&gateway, demanded).await.unwrap_err();
        assert!(fault.reason.starts_with("MODEL_"), "{fault:?}");
    }
}

#[tokio::test]
async fn a_model_that_hangs_leaves_quotations_time_before_the_deadline() {
    let moved = moved().await;
    let mut patient = options();
    patient.agents.answer.timeout = Duration::from_mins(5);
    let (gateway, _) = with_model(&moved.node.gateway, patient, |_| Scripted::Hangs);
    let call = crate::roles::call_of("acme", Duration::from_secs(4));
    let parts = gateway.answer(&call, question("ada", WHERE)).await.unwrap();
    let parts: Vec<_> = call
        .within("the answer", parts.try_collect::<Vec<_>>())
        .await
        .unwrap();
    assert_eq!(parts[0], AnswerPart::Text(OSLO.to_owned()));
}

#[tokio::test]
async fn an_answer_that_breaks_off_says_so() {
    let moved = moved().await;
    let (gateway, _) = with_model(&moved.node.gateway, options(), |_| {
        Scripted::Stops("In Oslo [T2], where she".to_owned(), "length")
    });
    let answer = ask(&gateway, question("ada", WHERE)).await.unwrap();
    assert_eq!(answer.text, "In Oslo , where she");
    assert!(answer.end.degraded[0].ends_with("the answer is cut short"));
    assert!(answer.end.model.is_some());
}

#[tokio::test]
async fn who_hangs_up_gives_the_place_of_the_model_back() {
    let moved = moved().await;
    let mut narrow = options();
    (narrow.concurrency, narrow.waiting) = (1, 0);
    let (gateway, _) = with_model(&moved.node.gateway, narrow, |index| match index {
        0 => Scripted::Drips("Oslo [T2]. ".repeat(50), Duration::from_millis(1)),
        _ => Scripted::Says("Oslo [T2].".to_owned()),
    });
    let mut parts = gateway
        .answer(&acme(), question("ada", WHERE))
        .await
        .unwrap();
    assert!(parts.next().await.unwrap().is_ok());
    let second = ask(&gateway, question("ada", WHERE)).await.unwrap();
    assert_eq!(second.end.model, None, "the only place is taken");
    drop(parts);
    let third = ask(&gateway, question("ada", WHERE)).await.unwrap();
    assert!(third.end.model.is_some());
}

#[tokio::test]
async fn whatever_a_model_says_an_answer_ends_and_cites_what_was_found() {
    let moved = moved().await;
    let known = [moved.rome.turns[0], moved.oslo.turns[0]];
    for seed in 0..60 {
        let (gateway, _) = with_model(&moved.node.gateway, options(), move |index| {
            garbage(seed * 1_000 + index as u64)
        });
        let answer = ask(&gateway, question("ada", WHERE)).await.unwrap();
        assert!(answer.turns().iter().all(|turn| known.contains(turn)));
        let is_bare = answer.end.outcome == Outcome::Answered && answer.cited.is_empty();
        assert!(!is_bare || !answer.end.degraded.is_empty(), "{seed}");
    }
}

#[tokio::test]
async fn where_nothing_is_found_no_model_is_asked() {
    let moved = moved().await;
    let (gateway, sent) = saying(&moved, "Oslo.");
    let mut nothing = question("ada", WHERE);
    nothing.query.filter.turns = vec![TurnId::from_bytes([9; 16])];
    let answer = ask(&gateway, nothing).await.unwrap();
    assert_eq!(answer.end.outcome, Outcome::Abstained);
    assert_eq!((answer.end.looked_at, sent.lock().unwrap().len()), (0, 0));
}

#[tokio::test]
async fn a_question_waits_for_the_write_that_it_names() {
    let node = Node::new().await;
    let _working = node.start_constructor();
    let told = vec![said("The ferry was late.")];
    let receipt = node.remember("ada", told).await.unwrap();
    let request = AnswerRequest {
        wait_for: vec![receipt.batch],
        ..question("ada", "Was the ferry late?")
    };
    let answer = ask(&node.gateway, request).await.unwrap();
    assert_eq!(answer.turns(), [receipt.turns[0].id]);
}
