//! Questions to the reader of turns: what comes back equal, and what is refused.

use std::ops::Range;

use chrono::TimeDelta;
use memfleet_domain::statement::{
    ChangeVectors, MentionedName, NameKind, RelationScores, Statement, StatementKind,
    StatementLine, StatementOwner, StatementRelation,
};
use memfleet_domain::tense::{PromptTense, TenseScores};
use memfleet_ports::turn_reader::{
    NeedQuestion, PromptReading, ReaderAnswers, TurnComparison, TurnInContext, TurnStatements,
    TurnText,
};
use prost_types::Duration;

use super::violations::{fields, violations};
use crate::convert::{accept, understand};
use crate::limits;
use crate::proto::internal as wire;

fn text(said: &str) -> TurnText {
    TurnText {
        speaker: "Ada".to_owned(),
        is_assistant: said.is_empty(),
        text: said.to_owned(),
    }
}

fn placed(said: &str, statements: &[Range<usize>]) -> TurnStatements {
    TurnStatements {
        turn: text(said),
        statements: statements.to_vec(),
    }
}

fn pair() -> TurnComparison {
    TurnComparison {
        earlier: placed("Ich wohne in Köln. Immer noch.", &[0..19, 20..31]),
        later: placed("Bin umgezogen.", &[Range { start: 0, end: 14 }]),
        gap: TimeDelta::milliseconds(1_500),
        question: Some("Wo wohne ich?".to_owned()),
    }
}

fn spans(spans: &[(u32, u32)]) -> wire::RelationsRequest {
    let mut pair = wire::TurnComparison::from(pair());
    let spans = spans
        .iter()
        .map(|&(start, end)| wire::ByteSpan { start, end });
    pair.earlier.as_mut().unwrap().statements = spans.collect();
    wire::RelationsRequest { pairs: vec![pair] }
}

#[test]
fn questions_arrive_as_they_were_asked() {
    let turns = vec![
        TurnInContext {
            turn: text("so"),
            previous: None,
        },
        TurnInContext {
            turn: text("it is"),
            previous: Some(text("")),
        },
    ];
    let message = wire::StatementsRequest::from(turns.clone());
    assert_eq!(accept(message), Ok(turns));
    let pairs = vec![pair()];
    let message = wire::RelationsRequest::from(pairs.clone());
    assert_eq!(accept(message), Ok(pairs));
    let question = NeedQuestion {
        prompt: "where".to_owned(),
        before: String::new(),
        lines: vec![text("here"), text("")],
    };
    let message = wire::NeedsRequest::from(question.clone());
    assert_eq!(accept(message), Ok(question));
}

#[test]
fn every_kind_owner_and_relation_comes_back_as_it_was_found() {
    let kinds = StatementKind::ALL.into_iter();
    let statements = kinds.enumerate().map(|(place, kind)| Statement {
        bytes: place..place + 2,
        kind,
        kind_probability: 0.25,
        owner: StatementOwner::ALL[place % StatementOwner::ALL.len()],
        owner_probability: 0.5,
        negated: 0.0,
        keep: 1.0,
        ends: 0.125,
        names: vec![MentionedName {
            bytes: place..place + 1,
            kind: NameKind::ALL[place % NameKind::ALL.len()],
        }],
        line: (place % 2 == 0).then_some(StatementLine {
            bytes: place..place + 3,
            probability: 0.75,
        }),
        vectors: ChangeVectors::new(
            [-16; ChangeVectors::DIMENSIONS],
            [16; ChangeVectors::DIMENSIONS],
        )
        .filter(|_| place == 1),
    });
    let found = ReaderAnswers {
        reader: "reader-7".to_owned(),
        answers: vec![statements.collect(), Vec::new()],
    };
    let message = wire::StatementsResponse::from(found.clone());
    assert_eq!(understand(message), Ok(found));
    let scores = RelationScores {
        later: 3,
        earlier: 4,
        probabilities: [0.0, 0.25, 0.5, 0.125, 1.0],
    };
    let message = wire::RelationScores::from(scores);
    let named = StatementRelation::ALL.map(|relation| scores.probability(relation));
    let sent = [
        message.unrelated,
        message.ends,
        message.corrects,
        message.adds,
        message.restates,
    ];
    assert_eq!(sent.map(f32::to_bits), named.map(f32::to_bits));
    let found = ReaderAnswers {
        reader: "reader-7".to_owned(),
        answers: vec![vec![scores], Vec::new()],
    };
    let message = wire::RelationsResponse::from(found.clone());
    assert_eq!(understand(message), Ok(found));
}

#[test]
fn a_prompt_comes_back_as_it_was_read_and_without_a_tense_asks_about_now() {
    let tense = TenseScores {
        probabilities: [0.5, 0.25, 0.125, 0.0625],
    };
    let reading = PromptReading {
        reader: "reader-7".to_owned(),
        tense,
        needs: vec![0.0, 0.75],
    };
    let message = wire::NeedsResponse::from(reading.clone());
    let sent = message.tense.unwrap();
    let sent = [sent.now, sent.before, sent.as_of, sent.all];
    assert_eq!(
        sent.map(f32::to_bits),
        tense.probabilities.map(f32::to_bits)
    );
    assert_eq!(understand(message.clone()), Ok(reading.clone()));
    let without = wire::NeedsResponse {
        tense: None,
        ..message
    };
    let now = PromptReading {
        tense: TenseScores::certain(PromptTense::Now),
        ..reading
    };
    assert_eq!(understand(without), Ok(now));
}

#[test]
fn spans_must_lie_in_the_text_in_their_order() {
    let earlier = "pairs[0].earlier.statements";
    for (wrong, place) in [
        (vec![(0, 32)], 0),
        (vec![(5, 5)], 0),
        (vec![(7, 3)], 0),
        // In the middle of a character.
        (vec![(0, 15)], 0),
        (vec![(0, 19), (18, 20)], 1),
        (vec![(20, 31), (0, 19)], 1),
    ] {
        assert_eq!(
            fields(spans(&wrong)),
            [format!("{earlier}[{place}]")],
            "{wrong:?}"
        );
    }
    assert!(accept(spans(&[(0, 19), (19, 31)])).is_ok());
}

#[test]
fn a_negative_gap_is_refused() {
    for (seconds, nanos) in [(-1, 0), (0, -1), (i64::MAX, 0), (0, 2_000_000_000)] {
        let mut message = wire::TurnComparison::from(pair());
        message.gap = Some(Duration { seconds, nanos });
        let request = wire::RelationsRequest {
            pairs: vec![message],
        };
        assert_eq!(fields(request), ["pairs[0].gap"]);
    }
}

#[test]
fn long_lists_and_texts_are_refused() {
    let turn = wire::TurnInContext {
        turn: Some(text("so").into()),
        previous: None,
    };
    let turns = vec![turn; limits::READ_TURNS + 1];
    assert_eq!(fields(wire::StatementsRequest { turns }), ["turns"]);
    let pairs = vec![wire::TurnComparison::from(pair()); limits::READ_TURNS + 1];
    assert_eq!(fields(wire::RelationsRequest { pairs }), ["pairs"]);
    let mut long = wire::TurnComparison::from(pair());
    long.question = Some("x".repeat(limits::TEXT + 1));
    let pairs = vec![long];
    assert_eq!(
        fields(wire::RelationsRequest { pairs }),
        ["pairs[0].question"]
    );
    let many = vec![(0, 19); limits::STATEMENTS + 1];
    assert_eq!(fields(spans(&many)), ["pairs[0].earlier.statements"]);
    let line = wire::TurnText::from(text("so"));
    let request = wire::NeedsRequest {
        prompt: "x".repeat(limits::TEXT + 1),
        before: "x".repeat(limits::TEXT + 1),
        lines: vec![line.clone(); limits::NEED_LINES + 1],
    };
    assert_eq!(fields(request), ["prompt", "before", "lines"]);
    let request = wire::NeedsRequest {
        lines: vec![wire::TurnText {
            speaker: "x".repeat(limits::SUBJECT + 1),
            text: "x".repeat(limits::TEXT + 1),
            ..line
        }],
        ..Default::default()
    };
    assert_eq!(fields(request), ["lines[0].speaker", "lines[0].text"]);
}

#[test]
fn whatever_is_no_probability_or_kind_is_not_understood() {
    for need in [f32::NAN, -0.1, 1.1, f32::INFINITY] {
        let answer = wire::NeedsResponse {
            needs: vec![0.5, need],
            ..Default::default()
        };
        let fault = understand(answer).unwrap_err();
        assert!(fault.message.contains("needs[1]"), "{fault}");
    }
    let statement = wire::Statement {
        bytes: Some(wire::ByteSpan { start: 0, end: 1 }),
        owner: 1,
        ..Default::default()
    };
    let found = violations(statement);
    let [(field, problem)] = &found[..] else {
        panic!("one field is wrong");
    };
    assert_eq!(field, "kind");
    assert!(problem.contains("StatementKind"), "{problem}");
}
