//! Check of a reader on texts whose reading is not in doubt.

use std::ops::Range;
use std::time::Duration;

use chrono::TimeDelta;
use memfleet_domain::statement::{RelationScores, Statement};

use crate::{PlacedStatements, ReadTurn, ReaderError, ReaderModel, TurnPair, TurnToRead};

const EARLIER: &str = "I live in Lisbon. What should I cook tonight?";

/// The first statement of [`EARLIER`], and the second.
const EARLIER_STATEMENTS: [Range<usize>; 2] = [0..17, 18..45];

const LATER: &str = "I moved to Berlin last week, I no longer live in Lisbon.";

const PROMPT: &str = "Which city do I live in?";

/// A line that [`PROMPT`] needs, and one that it does not.
const LINES: [(&str, bool); 2] = [("I live in Lisbon.", false), ("Thanks, that helps.", false)];

fn turn(text: &str) -> ReadTurn<'_> {
    ReadTurn {
        speaker: "Ada",
        is_assistant: false,
        text,
    }
}

fn at_once(_: Duration) {}

impl ReaderModel {
    /// Reads built-in texts. Fails where an answer is no probability, or is another than any sound
    /// reader gives.
    pub fn check(&self) -> Result<(), ReaderError> {
        self.check_statements()?;
        self.check_relations()?;
        self.check_needs()
    }

    fn check_statements(&self) -> Result<(), ReaderError> {
        let turns = [EARLIER, LATER].map(|text| TurnToRead {
            turn: turn(text),
            previous: None,
        });
        let found = self.statements(&turns, &at_once)?;
        let numbers = found.iter().flatten().flat_map(probabilities);
        expect(are_probabilities(numbers), "statements have probabilities")?;
        let is_read = found.iter().all(|statements| !statements.is_empty());
        expect(is_read, "every turn has a statement")
    }

    fn check_relations(&self) -> Result<(), ReaderError> {
        let pair = TurnPair {
            earlier: PlacedStatements {
                turn: turn(EARLIER),
                statements: &EARLIER_STATEMENTS,
            },
            later: PlacedStatements {
                turn: turn(LATER),
                statements: &[Range {
                    start: 0,
                    end: LATER.len(),
                }],
            },
            gap: TimeDelta::days(30),
        };
        let found = self.relations(&[pair], &at_once)?;
        let numbers = found[0].iter().flat_map(|it| it.probabilities);
        expect(are_probabilities(numbers), "relations have probabilities")?;
        let changes: Vec<f32> = found[0].iter().map(RelationScores::change).collect();
        let is_plausible = matches!(changes[..], [home, question] if home > question);
        expect(is_plausible, "a move changes a home, and no question")
    }

    fn check_needs(&self) -> Result<(), ReaderError> {
        let prompt = self.prompt_vector(PROMPT, "", &at_once)?;
        let lines = self.line_vectors(&LINES, &at_once)?;
        let odds: Vec<f32> = lines.iter().map(|line| self.need(&prompt, line)).collect();
        expect(odds.iter().all(|x| x.is_finite()), "needs are numbers")?;
        let is_plausible = matches!(odds[..], [answer, thanks] if answer > thanks);
        expect(is_plausible, "a prompt needs its answer more than thanks")
    }
}

fn probabilities(statement: &Statement) -> [f32; 5] {
    [
        statement.kind_probability,
        statement.owner_probability,
        statement.negated,
        statement.keep,
        statement.ends,
    ]
}

fn are_probabilities(mut numbers: impl Iterator<Item = f32>) -> bool {
    numbers.all(|x| (0.0..=1.0).contains(&x))
}

fn expect(holds: bool, expectation: &'static str) -> Result<(), ReaderError> {
    match holds {
        true => Ok(()),
        false => Err(ReaderError::Implausible(expectation)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tiny_reader;

    #[test]
    fn statements_of_the_built_in_turn_are_its_sentences() {
        let sentences = EARLIER_STATEMENTS.map(|bytes| &EARLIER[bytes]);
        assert_eq!(
            sentences,
            ["I live in Lisbon.", "What should I cook tonight?"]
        );
    }

    #[test]
    fn a_reader_of_random_weights_is_implausible() {
        let error = tiny_reader().check().unwrap_err();
        assert!(matches!(error, ReaderError::Implausible(_)), "{error}");
        assert!(!error.to_string().contains("probabilities"), "{error}");
    }
}
