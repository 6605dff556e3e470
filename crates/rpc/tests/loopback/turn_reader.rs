//! The reader of turns over a real socket.

use async_trait::async_trait;
use chrono::TimeDelta;
use memfleet_domain::statement::{
    ChangeVectors, RelationScores, Statement, StatementKind, StatementOwner,
};
use memfleet_domain::tense::TenseScores;
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::turn_reader::{
    NeedQuestion, PromptReading, ReaderAnswers, TurnComparison, TurnInContext, TurnReader,
    TurnStatements, TurnText, missing_reader,
};
use memfleet_rpc::fleet::RemoteTurnReader;

use crate::fleet::{credential, peers, replica};

/// A reader that counts bytes: each turn is one statement, and every probability is of lengths. It
/// has no model for texts of `missing`.
pub struct LengthReader;

fn share(length: usize) -> f32 {
    1.0 / (1.0 + length as f32)
}

#[async_trait]
impl TurnReader for LengthReader {
    async fn statements(
        &self,
        turns: Vec<TurnInContext>,
    ) -> Result<ReaderAnswers<Vec<Statement>>, Fault> {
        if turns.iter().any(|turn| turn.turn.text == "missing") {
            return Err(missing_reader("base"));
        }
        let statement = |turn: &TurnInContext| Statement {
            bytes: 0..turn.turn.text.len(),
            kind: StatementKind::Plan,
            kind_probability: share(turn.turn.text.len()),
            owner: StatementOwner::Group,
            owner_probability: share(turn.previous.as_ref().map_or(0, |it| it.text.len())),
            negated: 0.0,
            keep: 1.0,
            ends: f32::from(u8::from(turn.turn.is_assistant)),
            names: Vec::new(),
            line: None,
            vectors: ChangeVectors::new(
                [-16; ChangeVectors::DIMENSIONS],
                [16; ChangeVectors::DIMENSIONS],
            ),
        };
        Ok(found(turns.iter().map(|turn| vec![statement(turn)])))
    }

    async fn relations(
        &self,
        pairs: Vec<TurnComparison>,
    ) -> Result<ReaderAnswers<Vec<RelationScores>>, Fault> {
        let scores = |pair: &TurnComparison| RelationScores {
            later: pair.later.statements.len() - 1,
            earlier: pair.earlier.statements.len() - 1,
            probabilities: [share(pair.gap.num_seconds() as usize), 0.0, 0.5, 0.0, 1.0],
        };
        Ok(found(pairs.iter().map(|pair| vec![scores(pair)])))
    }

    async fn needs(&self, question: NeedQuestion) -> Result<PromptReading, Fault> {
        let around = question.prompt.len() + question.before.len();
        let lines = question.lines.iter();
        Ok(PromptReading {
            reader: READER.to_owned(),
            tense: TenseScores {
                probabilities: [0.5, 0.25, 0.125, 0.125],
            },
            needs: lines.map(|line| share(around + line.text.len())).collect(),
        })
    }
}

/// Name of the reader.
const READER: &str = "length-1";

fn found<T>(answers: impl Iterator<Item = T>) -> ReaderAnswers<T> {
    ReaderAnswers {
        reader: READER.to_owned(),
        answers: answers.collect(),
    }
}

fn text(said: &str) -> TurnText {
    TurnText {
        speaker: "Ada".to_owned(),
        is_assistant: said.len().is_multiple_of(2),
        text: said.to_owned(),
    }
}

fn turn(said: &str) -> TurnInContext {
    TurnInContext {
        turn: text(said),
        previous: Some(text("before")),
    }
}

#[tokio::test]
async fn answers_come_back_as_they_were_found_in_the_order_of_the_questions() {
    let replica = replica().await;
    let remote = RemoteTurnReader {
        peers: peers(&[&replica]).await,
        credential: credential(),
    };
    let turns: Vec<_> = (0..150).map(|n| turn(&"x".repeat(n))).collect();
    let statements = remote.statements(turns.clone()).await;
    assert_eq!(statements, LengthReader.statements(turns).await);
    let pair = |n: usize| TurnComparison {
        earlier: TurnStatements {
            turn: text("one two"),
            statements: vec![0..3, 4..7],
        },
        later: TurnStatements {
            turn: text("three"),
            statements: vec![0..5; 1],
        },
        gap: TimeDelta::seconds(n as i64),
        question: n.is_multiple_of(2).then(|| format!("question {n}")),
    };
    let pairs: Vec<_> = (0..150).map(pair).collect();
    let relations = remote.relations(pairs.clone()).await;
    assert_eq!(relations, LengthReader.relations(pairs).await);
    let question = NeedQuestion {
        prompt: "prompt".to_owned(),
        before: "before".to_owned(),
        lines: (0..2_500).map(|n| text(&"x".repeat(n % 40))).collect(),
    };
    let needs = remote.needs(question.clone()).await;
    assert_eq!(needs, LengthReader.needs(question.clone()).await);
    let alone = NeedQuestion {
        lines: Vec::new(),
        ..question
    };
    let reading = remote.needs(alone.clone()).await;
    assert_eq!(reading, LengthReader.needs(alone).await);
    let nothing = remote.statements(Vec::new()).await;
    assert_eq!(nothing, LengthReader.statements(Vec::new()).await);
}

#[tokio::test]
async fn long_prompts_arrive_with_their_beginning_and_the_end_of_what_was_before() {
    let replica = replica().await;
    let remote = RemoteTurnReader {
        peers: peers(&[&replica]).await,
        credential: credential(),
    };
    let question = NeedQuestion {
        prompt: "ö".repeat(50_000),
        before: format!("{}ö", "x".repeat(100_000)),
        lines: vec![text("line")],
    };
    let needs = remote.needs(question).await;
    assert_eq!(needs.unwrap().needs, [share(2 * 65_536 + 4)]);
}

#[tokio::test]
async fn a_reader_without_its_model_and_a_wrong_question_are_told() {
    let replica = replica().await;
    let remote = RemoteTurnReader {
        peers: peers(&[&replica]).await,
        credential: credential(),
    };
    let fault = remote.statements(vec![turn("missing")]).await.unwrap_err();
    assert_eq!(fault, missing_reader("base"));
    assert_eq!(fault.kind, FaultKind::FailedPrecondition);
    let beyond = TurnStatements {
        turn: text("short"),
        statements: vec![0..9; 1],
    };
    let pair = TurnComparison {
        earlier: beyond.clone(),
        later: beyond,
        gap: TimeDelta::zero(),
        question: None,
    };
    let fault = remote.relations(vec![pair]).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::InvalidArgument);
    let named = fault.fields.iter().map(|violation| &*violation.field);
    assert_eq!(
        named.collect::<Vec<_>>(),
        [
            "pairs[0].earlier.statements[0]",
            "pairs[0].later.statements[0]"
        ]
    );
}
