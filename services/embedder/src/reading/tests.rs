//! The service around a tiny reader of random weights.

use std::ops::Range;
use std::sync::Arc;

use chrono::TimeDelta;
use memfleet_domain::FaultKind;
use memfleet_understanding::testing::tiny_reader;
use tokio::sync::oneshot;

use super::*;

fn text(said: &str) -> TurnText {
    TurnText {
        speaker: "ada".to_owned(),
        is_assistant: false,
        text: said.to_owned(),
    }
}

fn turn(said: &str) -> TurnInContext {
    TurnInContext {
        turn: text(said),
        previous: Some(text("and you")),
    }
}

fn pair(earlier: &[Range<usize>], later: &[Range<usize>]) -> TurnComparison {
    let turn = |said, statements: &[Range<usize>]| TurnStatements {
        turn: text(said),
        statements: statements.to_vec(),
    };
    TurnComparison {
        earlier: turn("i live in lisbon with my cat", earlier),
        later: turn("we moved to berlin", later),
        gap: TimeDelta::days(40),
        question: None,
    }
}

fn need(prompt: &str, lines: &[&str]) -> NeedQuestion {
    NeedQuestion {
        prompt: prompt.to_owned(),
        before: "hello".to_owned(),
        lines: lines.iter().map(|line| text(line)).collect(),
    }
}

fn is_probability(x: f32) -> bool {
    (0.0..=1.0).contains(&x)
}

#[tokio::test]
async fn statements_come_in_the_order_of_the_turns() {
    let reader = LocalTurnReader::start(tiny_reader(), 100).unwrap();
    let turns: Vec<_> = (1..=40).map(|words| turn(&"word ".repeat(words))).collect();
    let statements = reader.statements(turns.clone()).await.unwrap().answers;
    assert_eq!(statements.len(), 40);
    for (turn, statements) in turns.iter().zip(&statements) {
        assert_eq!(statements[0].bytes.start, 0);
        let end = statements.last().unwrap().bytes.end;
        assert_eq!(end, turn.turn.text.trim_end().len());
    }
    let nothing = reader.statements(Vec::new()).await.unwrap();
    assert_eq!(
        (&*nothing.reader, nothing.answers.len()),
        (ReaderModel::NAME, 0)
    );
}

#[tokio::test]
async fn relations_are_of_every_statement_to_every_earlier_one() {
    let reader = LocalTurnReader::start(tiny_reader(), 100).unwrap();
    let pairs = vec![pair(&[0..16, 17..28], &[Range { start: 0, end: 18 }]); 20];
    let relations = reader.relations(pairs).await.unwrap().answers;
    assert_eq!(relations.len(), 20);
    let places: Vec<_> = relations[7]
        .iter()
        .map(|it| (it.later, it.earlier))
        .collect();
    assert_eq!(places, [(0, 0), (0, 1)]);
    assert_eq!(relations[0], relations[19]);
}

#[tokio::test]
async fn needs_are_probabilities_and_the_same_for_lines_that_are_known() {
    let reader = LocalTurnReader::start(tiny_reader(), 100).unwrap();
    let question = need(
        "where do i live",
        &["i live in lisbon", "thanks", "i have a cat"],
    );
    let reading = reader.needs(question.clone()).await.unwrap();
    let first = &reading.needs;
    assert!(
        first.len() == 3 && first.iter().all(|&x| is_probability(x)),
        "{first:?}"
    );
    assert!((first[0] - first[1]).abs() > f32::EPSILON, "{first:?}");
    assert_eq!(reader.needs(question).await.unwrap(), reading);
    let tenses = reading.tense.probabilities;
    assert!(
        (tenses.iter().sum::<f32>() - 1.0).abs() < 1e-4,
        "{tenses:?}"
    );
    let without_lines = reader.needs(need("so", &[])).await.unwrap();
    assert!(without_lines.needs.is_empty());
}

#[test]
fn needs_are_served_beside_statements_and_relations() {
    let statements = ReaderQuestion::Statements(vec![turn("so"), turn("it is")]);
    let relations = ReaderQuestion::Relations(vec![pair(&[], &[])]);
    let needs = ReaderQuestion::Needs(need("so", &["it is"]));
    let lanes = [&statements, &relations, &needs].map(|it| (it.lane(), it.texts()));
    assert_eq!(
        lanes,
        [
            (Lane::Background, 2),
            (Lane::Background, 1),
            (Lane::Call, 2)
        ]
    );
}

#[tokio::test]
async fn a_full_queue_refuses_and_says_when_to_try_again() {
    let queue = Arc::new(crate::queue::Queue::<QueuedReader>::new(4));
    let workers = Workers {
        queue: queue.clone(),
    };
    let reader = LocalTurnReader { workers };
    // Nobody serves this queue.
    let (answer, _answered) = oneshot::channel();
    let waiting = Request {
        question: ReaderQuestion::Statements(vec![turn("so"); 4]),
        texts: 4,
        since: std::time::Instant::now(),
        answer,
    };
    assert!(queue.push(waiting, Lane::Background));
    let fault = reader.statements(vec![turn("so")]).await.unwrap_err();
    assert_eq!(
        (fault.kind, &*fault.reason),
        (FaultKind::ResourceExhausted, "READER_OVERLOADED")
    );
    assert!(fault.retry_after.is_some());
}

#[test]
fn a_caller_who_left_is_read_no_further() {
    let (answer, answered) = oneshot::channel();
    let request = Request::<QueuedReader> {
        question: ReaderQuestion::Statements(Vec::new()),
        texts: 0,
        since: std::time::Instant::now(),
        answer,
    };
    let mut answered = Some(answered);
    let items: Vec<usize> = (0..3 * TURNS_AT_A_TIME).collect();
    let answers = in_parts(
        &request,
        &items,
        |_| 1,
        |part| {
            answered.take();
            Ok(part.to_vec())
        },
    );
    assert_eq!(answers.unwrap().len(), TURNS_AT_A_TIME);
}

#[test]
fn long_texts_are_read_in_smaller_parts() {
    let (answer, _answered) = oneshot::channel();
    let request = Request::<QueuedReader> {
        question: ReaderQuestion::Statements(Vec::new()),
        texts: 0,
        since: std::time::Instant::now(),
        answer,
    };
    let items = [10, BYTES_AT_A_TIME, 1, 5 * BYTES_AT_A_TIME, 2];
    let mut parts = Vec::new();
    let answers = in_parts(
        &request,
        &items,
        |bytes| *bytes,
        |part| {
            parts.push(part.len());
            Ok(part.to_vec())
        },
    );
    assert_eq!(answers.unwrap(), items);
    assert_eq!(parts, [2, 2, 1]);
}
