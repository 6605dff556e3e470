//! Check of a reader: its answers to built-in texts beside those of the program that trained it,
//! which computes with floats.

use std::slice;
use std::time::Duration;

use chrono::TimeDelta;
use memfleet_domain::statement::RelationScores;
use memfleet_domain::tense::PromptTense;
use serde::Deserialize;

use crate::heads::sigmoid;
use crate::{PlacedStatements, ReadTurn, ReaderError, ReaderModel, TurnPair, TurnToRead};

/// Answers of the training program (`training/memfleet_training/reference.py`).
const REFERENCE: &str = include_str!("../data/reference.json");

/// Name of their file in errors.
const FILE: &str = "reference.json";

/// Speaker of the built-in texts.
const SPEAKER: &str = "Ada";

/// Largest mean difference of probabilities. Weights in bytes cost some; a wrong layer costs more.
const MAX_MEAN_DIFFERENCE: f32 = 0.05;

/// Texts, and what the training program says of them.
#[derive(Debug, Deserialize)]
struct Reference {
    turns: Vec<ReferenceTurn>,
    pairs: Vec<ReferencePair>,
    needs: Vec<ReferenceNeed>,
}

/// Turn with the number of its statements, and probabilities of the first.
#[derive(Debug, Deserialize)]
struct ReferenceTurn {
    text: String,
    statements: usize,
    kind: f32,
    owner: f32,
    keep: f32,
}

/// Two turns of one statement each, and the probability of a change.
#[derive(Debug, Deserialize)]
struct ReferencePair {
    earlier: String,
    later: String,
    days: i64,
    question: Option<String>,
    change: f32,
}

/// Prompt and line, the probability of the need, and the tense of the prompt.
#[derive(Debug, Deserialize)]
struct ReferenceNeed {
    prompt: String,
    line: String,
    need: f32,
    tense: [f32; PromptTense::ALL.len()],
}

/// Probabilities beside those of the training program.
#[derive(Debug, Default)]
struct Differences {
    sum: f32,
    count: usize,
}

impl Differences {
    fn add(&mut self, found: f32, expected: f32) {
        // A number that is none differs by all.
        let difference = (found - expected).abs();
        self.sum += if difference <= 1.0 { difference } else { 1.0 };
        self.count += 1;
    }

    fn mean(&self) -> f32 {
        self.sum / self.count.max(1) as f32
    }
}

impl ReaderModel {
    /// Reads built-in texts. Fails where the answers differ from those of the training program by
    /// more than weights in bytes cost.
    pub fn check(&self) -> Result<(), ReaderError> {
        let reference: Reference = serde_json::from_str(REFERENCE)
            .map_err(|error| ReaderError::Reference(format!("{FILE}: {error}")))?;
        let mut differences = Differences::default();
        let mut recut = 0;
        for turn in &reference.turns {
            recut += usize::from(!self.is_cut_alike(turn, &mut differences)?);
        }
        for pair in &reference.pairs {
            differences.add(self.change(pair)?, pair.change);
        }
        for need in &reference.needs {
            self.compare_need(need, &mut differences)?;
        }
        let mean = differences.mean();
        if mean > MAX_MEAN_DIFFERENCE || recut * 2 > reference.turns.len() {
            return Err(ReaderError::Differs(mean));
        }
        Ok(())
    }

    /// Whether a turn has as many statements as expected; the first of it is compared then.
    fn is_cut_alike(
        &self,
        turn: &ReferenceTurn,
        differences: &mut Differences,
    ) -> Result<bool, ReaderError> {
        let read = TurnToRead {
            turn: said(&turn.text),
            previous: None,
        };
        let found = self.statements(&[read], &at_once)?;
        let [first, rest @ ..] = &found[0][..] else {
            return Ok(false);
        };
        let is_alike = rest.len() + 1 == turn.statements;
        if is_alike {
            differences.add(first.kind_probability, turn.kind);
            differences.add(first.owner_probability, turn.owner);
            differences.add(first.keep, turn.keep);
        }
        Ok(is_alike)
    }

    fn change(&self, pair: &ReferencePair) -> Result<f32, ReaderError> {
        let [earlier, later] = [&pair.earlier, &pair.later].map(|text| 0..text.len());
        let found = self.relations(
            &[TurnPair {
                earlier: PlacedStatements {
                    turn: said(&pair.earlier),
                    statements: slice::from_ref(&earlier),
                },
                later: PlacedStatements {
                    turn: said(&pair.later),
                    statements: slice::from_ref(&later),
                },
                gap: TimeDelta::days(pair.days),
                question: pair.question.as_deref(),
            }],
            &at_once,
        )?;
        Ok(found[0].first().map_or(f32::NAN, RelationScores::change))
    }

    fn compare_need(
        &self,
        need: &ReferenceNeed,
        differences: &mut Differences,
    ) -> Result<(), ReaderError> {
        let prompt = self.prompt_vector(&need.prompt, "", &at_once)?;
        let lines = self.line_vectors(&[(&need.line, false)], &at_once)?;
        let odds = self.need(&prompt, &lines[0]);
        differences.add(sigmoid(odds), need.need);
        for (found, expected) in prompt.tense.probabilities.iter().zip(need.tense) {
            differences.add(*found, expected);
        }
        Ok(())
    }
}

fn said(text: &str) -> ReadTurn<'_> {
    ReadTurn {
        speaker: SPEAKER,
        is_assistant: false,
        text,
    }
}

fn at_once(_: Duration) {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tiny_reader;

    #[test]
    fn a_reader_of_random_weights_differs() {
        let error = tiny_reader().check().unwrap_err();
        assert!(matches!(error, ReaderError::Differs(_)), "{error}");
    }

    #[test]
    fn a_number_that_is_none_differs_by_all() {
        let mut differences = Differences::default();
        differences.add(f32::NAN, 0.5);
        differences.add(0.25, 0.25);
        assert!((differences.mean() - 0.5).abs() < f32::EPSILON);
    }
}
