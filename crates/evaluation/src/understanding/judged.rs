//! Judged lines: sentences of scenarios, and whether they are good lines of their speakers' profiles.

use super::LabelledScenario;
use super::lines::{LineError, fields, number};

/// A sentence of a scenario with a reader's judgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedLine {
    /// Writer of the scenario.
    pub writer: String,
    /// Number of the scenario.
    pub scenario: String,
    /// Place of the turn.
    pub turn: usize,
    /// First character of the sentence in the turn, and the one behind the last.
    pub characters: [usize; 2],
    /// The judgement.
    pub judgement: LineJudgement,
}

/// Judgement of a sentence as a line of its speaker's profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineJudgement {
    /// True where it is said in earnest of the speaker or a group with the speaker.
    pub is_said: bool,
    /// True where it is understood without the turns around it.
    pub is_complete: bool,
    /// True where it is worth knowing for months.
    pub is_worth: bool,
}

impl LineJudgement {
    /// The judgement of letters: `s`, `c` and `w` for what holds, and `-` for what does not.
    pub(super) fn of_letters(letters: &str) -> Option<Self> {
        let is_known = !letters.is_empty() && letters.chars().all(|letter| "scw-".contains(letter));
        is_known.then(|| Self {
            is_said: letters.contains('s'),
            is_complete: letters.contains('c'),
            is_worth: letters.contains('w'),
        })
    }

    /// True where all three hold.
    pub fn is_line(self) -> bool {
        self.is_said && self.is_complete && self.is_worth
    }
}

impl JudgedLine {
    /// Reads the judgements of a file, one a line. Fails at the first that is not of the format.
    pub fn read(text: &str) -> Result<Vec<Self>, LineError> {
        let lines = text.lines().zip(1..);
        let lines = lines.filter(|(text, _)| !text.trim().is_empty());
        let read =
            |(text, line)| Self::read_line(text).map_err(|problem| LineError { line, problem });
        lines.map(read).collect()
    }

    fn read_line(line: &str) -> Result<Self, String> {
        let [place, letters] = fields(line)[..] else {
            return Err("a judgement is place | letters".to_owned());
        };
        let words: Vec<&str> = place.split_whitespace().collect();
        let [writer, scenario, turn, span] = words[..] else {
            return Err("a place is writer, scenario, turn, first-last".to_owned());
        };
        let judgement = LineJudgement::of_letters(letters);
        let judgement =
            judgement.ok_or_else(|| format!("`{letters}` has other letters than s, c and w"))?;
        let span = span.split_once('-');
        let (first, last) = span.ok_or("a sentence is first-last")?;
        Ok(Self {
            writer: writer.to_owned(),
            scenario: scenario.to_owned(),
            turn: number(turn)?,
            characters: [number(first)?, number(last)?],
            judgement,
        })
    }

    /// The fault of a place that is not in a scenario; none where the scenario has it.
    pub(super) fn problem(&self, scenario: Option<&LabelledScenario>) -> Option<String> {
        let turn = scenario.and_then(|it| it.turns.get(self.turn));
        // A line break counts as one character.
        let text = turn.map(|it| it.said.text.replace(" ⏎ ", "\n"));
        let length = text.map_or(0, |it| it.chars().count());
        let [first, last] = self.characters;
        let is_there = first < last && last <= length;
        let Self {
            writer,
            scenario,
            turn,
            ..
        } = self;
        (!is_there).then(|| format!("{writer} {scenario} has no {first}-{last} in turn {turn}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::{JudgedLine, LineJudgement};

    #[test]
    fn a_judgement_is_read_and_held_against_its_scenario() {
        let scenario = "## 001 | en | expiry\n@ 2025-01-14T18:40 Ilse: We're in the flat\n";
        let scenario = &read(scenario).unwrap()[0];
        let judged = JudgedLine::read("w01 001 0 0-17 | sw\nw01 001 0 0-18 | -\n").unwrap();
        let [said, beyond] = &judged[..] else {
            panic!("two lines");
        };
        let LineJudgement {
            is_said,
            is_complete,
            is_worth,
        } = said.judgement;
        assert_eq!([is_said, is_complete, is_worth], [true, false, true]);
        assert_eq!(said.problem(Some(scenario)), None);
        let problem = Some("w01 001 has no 0-18 in turn 0".to_owned());
        assert_eq!(beyond.problem(Some(scenario)), problem);
        assert!(said.problem(None).is_some());
    }

    #[test]
    fn a_line_that_is_not_of_the_format_is_told() {
        for (text, problem) in [
            ("w01 001 0 0-17", "a judgement is place | letters"),
            (
                "w01 001 0 | s",
                "a place is writer, scenario, turn, first-last",
            ),
            ("w01 001 0 17 | s", "a sentence is first-last"),
            (
                "w01 001 0 0-17 | sx",
                "`sx` has other letters than s, c and w",
            ),
        ] {
            let error = JudgedLine::read(text).unwrap_err();
            assert_eq!((error.line, error.problem.as_str()), (1, problem));
        }
    }
}
