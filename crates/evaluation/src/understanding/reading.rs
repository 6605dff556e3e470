//! Scenarios from a file of lines (`data/understanding/README.md`).

use memfleet_domain::statement::StatementKind;

use super::lines::{
    LineError, date, details, fields, named, pair, places, read_lines, spoken, time,
};
use super::{
    LabelledScenario, LabelledStatement, QuestionTense, ScenarioKind, ScenarioQuestion,
    ScenarioTurn, StatementPair,
};

/// Reads the scenarios of a file. It fails at the first line that is not of the format; labels that
/// contradict the text are told by [`LabelledScenario::problems`].
pub fn read(text: &str) -> Result<Vec<LabelledScenario>, LineError> {
    let mut scenarios = Vec::new();
    read_lines(text, |mark, rest, _| read_line(mark, rest, &mut scenarios))?;
    Ok(scenarios)
}

fn read_line(mark: &str, rest: &str, scenarios: &mut Vec<LabelledScenario>) -> Result<(), String> {
    if mark == "##" {
        scenarios.push(heading(rest)?);
        return Ok(());
    }
    let scenario = scenarios.last_mut().ok_or("it stands before a heading")?;
    match mark {
        "@" => scenario.turns.push(turn(rest)?),
        "-" => {
            let turn = scenario.turns.last_mut();
            let turn = turn.ok_or("a statement stands before the first turn")?;
            turn.statements.push(statement(rest)?);
        }
        ">" => scenario.pairs.push(dated_pair(rest)?),
        "?" => scenario.questions.push(question(rest)?),
        other => return Err(format!("`{other}` begins no line of a scenario")),
    }
    Ok(())
}

fn heading(line: &str) -> Result<LabelledScenario, String> {
    let [number, language, kind] = fields(line)[..] else {
        return Err("a heading is number | language | kind".to_owned());
    };
    Ok(LabelledScenario {
        number: number.to_owned(),
        language: language.to_owned(),
        kind: named(kind, ScenarioKind::named, "a kind of scenario")?,
        turns: Vec::new(),
        pairs: Vec::new(),
        questions: Vec::new(),
    })
}

/// Turn without statements.
pub(super) fn turn(line: &str) -> Result<ScenarioTurn, String> {
    let parts = line.split_once(' ');
    let (at, said) = parts.ok_or("a turn is time, speaker, colon and text")?;
    Ok(ScenarioTurn {
        time: time(at)?,
        said: spoken(said)?,
        statements: Vec::new(),
    })
}

fn statement(line: &str) -> Result<LabelledStatement, String> {
    let fields = fields(line);
    let (span, kind, owner, words) = match fields[..] {
        [span, kind, owner] => (span, kind, owner, ""),
        [span, kind, owner, words] => (span, kind, owner, words),
        _ => return Err("a statement is span | kind | owner | details".to_owned()),
    };
    Ok(LabelledStatement {
        span: span.to_owned(),
        kind: named(kind, StatementKind::named, "a kind of statement")?,
        owner: owner.to_owned(),
        details: details(words)?,
    })
}

fn dated_pair(line: &str) -> Result<StatementPair, String> {
    let (statements, since) = match fields(line)[..] {
        [statements] => (statements, None),
        [statements, since] => (statements, Some(date(since)?)),
        _ => return Err("a pair is later, relation, earlier | date".to_owned()),
    };
    Ok(StatementPair {
        since,
        ..pair(statements)?
    })
}

fn question(line: &str) -> Result<ScenarioQuestion, String> {
    let mut fields = fields(line);
    fields.resize(6.max(fields.len()), "");
    let [tense, asked_at, text, right, wrong, turns] = fields[..] else {
        return Err("a question has six fields".to_owned());
    };
    let strings = |field: &str, mark: char| -> Result<Vec<String>, String> {
        if field.is_empty() {
            return Ok(Vec::new());
        }
        let listed = field.strip_prefix(mark);
        let listed = listed.ok_or_else(|| format!("`{field}` does not begin with `{mark}`"))?;
        Ok(listed.split(" ; ").map(|it| it.trim().to_owned()).collect())
    };
    let [evidence, wrong_evidence] = places(turns)?;
    Ok(ScenarioQuestion {
        tense: named(tense, QuestionTense::named, "a tense")?,
        asked_at: time(asked_at)?,
        text: text.to_owned(),
        right: strings(right, '+')?,
        wrong: strings(wrong, '-')?,
        evidence,
        wrong_evidence,
    })
}

#[cfg(test)]
mod tests {
    use memfleet_domain::statement::StatementRelation;

    use super::super::StatementPlace;
    use super::*;

    const SCENARIO: &str = "\
## 001 | en | plain_change
@ 2025-01-14T18:40 Ilse: We're in the flat in Emden till June. Grete hates water.
- We're in the flat in Emden till June. | state | me | until=2025-06 keep
- Grete hates water. | hearsay | Grete | neg
@ 2025-06-29T09:12 *Assistant: First night in Leer!
- First night in Leer! | state | me | from=2025-06-29 ctx=0.0
> 1.0 ends 0.0 | 2025-06-29

? now | 2025-09-08T19:00 | Where does Ilse live? | + Leer | - Emden ; harbour | e=1 s=0
? unknown | 2025-09-08T19:00 | What is the rent? | | |
";

    #[test]
    fn a_scenario_is_read_with_its_labels() {
        let scenarios = read(SCENARIO).unwrap();
        let [scenario] = &scenarios[..] else {
            panic!("{scenarios:?}");
        };
        assert_eq!(scenario.kind, ScenarioKind::PlainChange);
        assert!(scenario.turns[1].said.is_assistant && !scenario.turns[0].said.is_assistant);
        let [flat, grete] = &scenario.turns[0].statements[..] else {
            panic!("{:?}", scenario.turns[0]);
        };
        assert_eq!(
            (flat.details.until.as_deref(), flat.details.is_kept),
            (Some("2025-06"), true)
        );
        assert_eq!(
            (grete.kind, grete.details.is_negated),
            (StatementKind::Hearsay, true)
        );
        let earlier = StatementPlace { turn: 0, place: 0 };
        let later = StatementPlace { turn: 1, place: 0 };
        assert_eq!(
            scenario.turns[1].statements[0].details.context,
            Some(earlier)
        );
        let pair = StatementPair {
            later,
            relation: StatementRelation::Ends,
            earlier,
            since: Some("2025-06-29".to_owned()),
        };
        assert_eq!(scenario.pairs, [pair]);
        let [now, unknown] = &scenario.questions[..] else {
            panic!("{:?}", scenario.questions);
        };
        assert_eq!(now.wrong, ["Emden", "harbour"]);
        assert_eq!(
            (&now.evidence[..], &now.wrong_evidence[..]),
            (&[1][..], &[0][..])
        );
        assert!(unknown.right.is_empty() && unknown.evidence.is_empty());
    }

    #[test]
    fn a_fault_names_its_line_and_the_field() {
        for (line, fault, problem) in [
            (
                "## 001 | en | change",
                1,
                "`change` is not a kind of scenario",
            ),
            (
                "@ noon Ilse: Hi",
                2,
                "`noon` is no time such as 2025-01-14T18:40",
            ),
            ("> 1.0 ended 0.0", 2, "`ended` is not a relation"),
            ("> 1 ends 0.0", 2, "`1` is no place such as 2.1"),
            (
                "> 1.0 ends 0.0 | June",
                2,
                "`June` is no year, month or day",
            ),
            (
                "- text | state | me",
                2,
                "a statement stands before the first turn",
            ),
            ("nonsense", 2, "`nonsense` is no line of the format"),
        ] {
            let text = match fault {
                1 => line.to_owned(),
                _ => format!("## 001 | en | expiry\n{line}"),
            };
            let error = read(&text).unwrap_err();
            assert_eq!((error.line, &*error.problem), (fault, problem));
        }
    }
}
