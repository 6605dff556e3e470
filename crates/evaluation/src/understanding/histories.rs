//! Long conversations in which every change is listed, and questions about them.

use std::ops::RangeInclusive;

use chrono::NaiveDateTime;
use memfleet_domain::statement::StatementRelation;

use super::ScenarioTurn;
use super::lines::{LineError, fields, named, number, places, read_lines, time};
use super::reading::turn;

/// Fewest turns of a history, and most.
const TURNS: RangeInclusive<usize> = 60..=110;

/// A conversation over months. Nothing but its changes takes the place of anything in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// Number of the history.
    pub number: String,
    /// Tag of the language.
    pub language: String,
    /// Who speaks: friends, a group, a user with an assistant.
    pub genre: String,
    /// Turns in order, without statements.
    pub turns: Vec<ScenarioTurn>,
    /// All changes.
    pub changes: Vec<HistoryChange>,
    /// Questions about it.
    pub questions: Vec<HistoryQuestion>,
}

/// A turn that ends or corrects words of an earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryChange {
    /// Places of the later and of the earlier turn.
    pub turns: [usize; 2],
    /// `ends` or `corrects`.
    pub relation: StatementRelation,
    /// Words of both turns that it is about, verbatim.
    pub words: [String; 2],
}

/// A question that is asked after the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryQuestion {
    /// When it is asked.
    pub asked_at: NaiveDateTime,
    /// The question.
    pub text: String,
    /// Places of the turns that state the answer.
    pub evidence: Vec<usize>,
    /// Places of the turns whose value would be a wrong answer.
    pub wrong_evidence: Vec<usize>,
}

impl History {
    /// Reads the histories of a file. Fails at the first line that is not of the format.
    pub fn read(text: &str) -> Result<Vec<Self>, LineError> {
        let mut histories = Vec::new();
        read_lines(text, |mark, rest, _| read_line(mark, rest, &mut histories))?;
        Ok(histories)
    }

    /// Labels that contradict the text, a line each.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if !TURNS.contains(&self.turns.len()) {
            problems.push(format!("{} turns", self.turns.len()));
        }
        if let Some(place) = self
            .turns
            .windows(2)
            .position(|it| it[0].time >= it[1].time)
        {
            problems.push(format!(
                "turn {} is not later than the one before it",
                place + 1
            ));
        }
        for HistoryChange { turns, words, .. } in &self.changes {
            let [later, earlier] = *turns;
            if earlier >= later {
                problems.push(format!(
                    "turn {later} changes turn {earlier}, which is no earlier one"
                ));
            }
            for (place, words) in turns.iter().zip(words) {
                let turn = self.turns.get(*place);
                if !turn.is_some_and(|turn| turn.said.text.contains(words.as_str())) {
                    problems.push(format!("turn {place} does not say `{words}`"));
                }
            }
        }
        let end = self.turns.last().map(|turn| turn.time);
        for question in &self.questions {
            let mut places = question.evidence.iter().chain(&question.wrong_evidence);
            if question.evidence.is_empty() || places.any(|place| *place >= self.turns.len()) {
                problems.push(format!("`{}` names no turn with its answer", question.text));
            }
            if Some(question.asked_at) < end {
                problems.push(format!("`{}` is asked before the end", question.text));
            }
        }
        problems
    }
}

fn read_line(mark: &str, rest: &str, histories: &mut Vec<History>) -> Result<(), String> {
    if mark == "##" {
        let [number, language, genre] = fields(rest)[..] else {
            return Err("a heading is number | language | genre".to_owned());
        };
        histories.push(History {
            number: number.to_owned(),
            language: language.to_owned(),
            genre: genre.to_owned(),
            turns: Vec::new(),
            changes: Vec::new(),
            questions: Vec::new(),
        });
        return Ok(());
    }
    let history = histories.last_mut().ok_or("it stands before a heading")?;
    match mark {
        "@" => history.turns.push(turn(rest)?),
        ">" => history.changes.push(change(rest)?),
        "?" => history.questions.push(question(rest)?),
        other => return Err(format!("`{other}` begins no line of a history")),
    }
    Ok(())
}

fn change(line: &str) -> Result<HistoryChange, String> {
    let format = || "a change is later turn, relation, earlier turn | later words | earlier words";
    let [turns, later, earlier] = fields(line)[..] else {
        return Err(format().to_owned());
    };
    let [after, relation, before] = turns.split_whitespace().collect::<Vec<_>>()[..] else {
        return Err(format().to_owned());
    };
    let relation = named(relation, StatementRelation::named, "a relation")?;
    if !relation.is_change() {
        return Err("a change ends or corrects".to_owned());
    }
    Ok(HistoryChange {
        turns: [number(after)?, number(before)?],
        relation,
        words: [later, earlier].map(str::to_owned),
    })
}

fn question(line: &str) -> Result<HistoryQuestion, String> {
    let [asked_at, text, turns] = fields(line)[..] else {
        return Err("a question is time | question | e=turns s=turns".to_owned());
    };
    let [evidence, wrong_evidence] = places(turns)?;
    Ok(HistoryQuestion {
        asked_at: time(asked_at)?,
        text: text.to_owned(),
        evidence,
        wrong_evidence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HISTORY: &str = "\
## 01 | en | friends
@ 2024-03-02T18:10 Mara: Pottery starts on Tuesday!
@ 2024-03-19T09:40 *Jo: Lovely.
@ 2024-05-02T09:40 Mara: The class is on Thursdays now, and I made a bowl.
> 2 ends 0 | on Thursdays now | on Tuesday
? 2024-09-01T10:00 | On which day does Mara go to pottery? | e=2 s=0
";

    #[test]
    fn a_history_is_read_with_its_changes() {
        let histories = History::read(HISTORY).unwrap();
        let [history] = &histories[..] else {
            panic!("{histories:?}");
        };
        assert_eq!((&*history.language, &*history.genre), ("en", "friends"));
        assert!(history.turns[1].said.is_assistant);
        let [change] = &history.changes[..] else {
            panic!("{:?}", history.changes);
        };
        assert_eq!(
            (change.turns, change.relation),
            ([2, 0], StatementRelation::Ends)
        );
        let question = &history.questions[0];
        assert_eq!(
            (&question.evidence[..], &question.wrong_evidence[..]),
            (&[2][..], &[0][..])
        );
        assert_eq!(history.problems(), ["3 turns"]);
    }

    #[test]
    fn labels_that_contradict_the_text_are_told() {
        let text = HISTORY
            .replace("05-02T09", "03-19T09")
            .replace("> 2 ends 0 | on Thursdays", "> 0 ends 2 | on Fridays")
            .replace("2024-09-01", "2024-01-01")
            .replace("e=2", "e=3");
        let expected = [
            "3 turns",
            "turn 2 is not later than the one before it",
            "turn 0 changes turn 2, which is no earlier one",
            "turn 0 does not say `on Fridays now`",
            "turn 2 does not say `on Tuesday`",
            "`On which day does Mara go to pottery?` names no turn with its answer",
            "`On which day does Mara go to pottery?` is asked before the end",
        ];
        assert_eq!(History::read(&text).unwrap()[0].problems(), expected);
    }

    #[test]
    fn a_fault_names_its_line_and_the_field() {
        for (line, problem) in [
            ("## 01 | en", "a heading is number | language | genre"),
            ("> 2 adds 0 | a | b", "a change ends or corrects"),
            (
                "? 2024-09-01T10:00 | Who? | x=1",
                "`x=1` is neither e= nor s=",
            ),
            ("- on Tuesday", "`-` begins no line of a history"),
        ] {
            let error = History::read(&format!("## 00 | en | group\n{line}")).unwrap_err();
            assert_eq!((error.line, &*error.problem), (2, problem));
        }
    }
}
