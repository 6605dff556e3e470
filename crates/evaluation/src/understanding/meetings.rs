//! Labels of the clauses of real meetings. The texts are not here: a turn is named by its place in
//! its meeting and a hash, a clause by its first and last character, an owner by its class.

use std::ops::RangeInclusive;

use memfleet_domain::statement::{StatementKind, StatementOwner};

use super::checking::no_statement;
use super::lines::{LineError, details, fields, named, number, pair, read_lines};
use super::{StatementDetails, StatementPair, StatementPlace};

/// Hexadecimal digits of a commit.
const COMMIT_DIGITS: usize = 40;

/// Hexadecimal digits of the hash of a turn.
const HASH_DIGITS: usize = 8;

/// Labels of a piece of a meeting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeetingLabels {
    /// Number, the name of its file.
    pub number: String,
    /// The file of the meeting in its repository.
    pub meeting: String,
    /// The commit, 40 hexadecimal digits.
    pub commit: String,
    /// First and last turn.
    pub range: RangeInclusive<usize>,
    /// Turns with labels, in order.
    pub turns: Vec<MeetingTurn>,
    /// Clauses about the same matter; [`StatementPlace::turn`] is a turn of the meeting.
    pub pairs: Vec<StatementPair>,
}

/// Labels of a turn of a meeting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeetingTurn {
    /// Place in the meeting, from 0.
    pub place: usize,
    /// Characters of the text, runs of white space as one.
    pub characters: usize,
    /// First 8 hexadecimal digits of the SHA-256 of that text.
    pub hash: String,
    /// The clauses, in order.
    pub clauses: Vec<LabelledClause>,
}

/// Labels of a clause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledClause {
    /// Place of its first character.
    pub start: usize,
    /// Place behind its last character.
    pub end: usize,
    /// Kind of the statement.
    pub kind: StatementKind,
    /// Class of its owner.
    pub owner: StatementOwner,
    /// Its times and marks.
    pub details: StatementDetails,
}

impl MeetingLabels {
    /// Reads a file of labels. Fails at the first line that is not of the format or contradicts one
    /// before it.
    pub fn read(file_number: &str, text: &str) -> Result<Self, LineError> {
        let mut labels: Option<Self> = None;
        read_lines(text, |mark, rest, _| match (mark, &mut labels) {
            ("##", None) => {
                labels = Some(heading(file_number, rest)?);
                Ok(())
            }
            ("##", Some(_)) | (_, None) => {
                Err("a file has one heading, in the first line".to_owned())
            }
            ("@", Some(labels)) => labels.push_turn(rest),
            ("-", Some(labels)) => labels.push_clause(rest),
            (">", Some(labels)) => labels.push_pair(rest),
            (other, _) => Err(format!("`{other}` begins no line of labels")),
        })?;
        labels.ok_or_else(|| LineError {
            line: 1,
            problem: "the file is empty".to_owned(),
        })
    }

    fn push_turn(&mut self, rest: &str) -> Result<(), String> {
        let words: Vec<&str> = rest.split(' ').collect();
        let [place, characters, hash] = words[..] else {
            return Err("a turn is place, characters and hash".to_owned());
        };
        let place = number(place)?;
        if !self.range.contains(&place) {
            return Err(format!("turn {place} is out of the range of the heading"));
        }
        if self.turns.last().is_some_and(|last| place <= last.place) {
            return Err(format!("turn {place} does not come behind the last one"));
        }
        self.turns.push(MeetingTurn {
            place,
            characters: number(characters)?,
            hash: digits(hash, HASH_DIGITS)?,
            clauses: Vec::new(),
        });
        Ok(())
    }

    fn push_clause(&mut self, rest: &str) -> Result<(), String> {
        let fields = fields(rest);
        let (span, kind, owner, words) = match fields[..] {
            [span, kind, owner] => (span, kind, owner, ""),
            [span, kind, owner, words] => (span, kind, owner, words),
            _ => return Err("a clause is start-end | kind | owner | details".to_owned()),
        };
        let (start, end) = span_of(span)?;
        let clause = LabelledClause {
            start,
            end,
            kind: named(kind, StatementKind::named, "a kind of statement")?,
            owner: named(owner, StatementOwner::named, "a class of owner")?,
            details: details(words)?,
        };
        let turn = self.turns.last_mut();
        let turn = turn.ok_or("a clause stands before the first turn")?;
        let first = turn.clauses.last().map_or(0, |last| last.end);
        if start < first || start >= end || end > turn.characters {
            let characters = turn.characters;
            return Err(format!(
                "{span} is no span between {first} and {characters}"
            ));
        }
        turn.clauses.push(clause);
        Ok(())
    }

    fn push_pair(&mut self, rest: &str) -> Result<(), String> {
        let pair = pair(rest)?;
        for place in [pair.later, pair.earlier] {
            if !self.has(place) {
                return Err(no_statement(place));
            }
        }
        if pair.later <= pair.earlier {
            return Err("the first statement is not later".to_owned());
        }
        self.pairs.push(pair);
        Ok(())
    }

    fn has(&self, place: StatementPlace) -> bool {
        let mut turns = self.turns.iter();
        turns.any(|turn| turn.place == place.turn && place.place < turn.clauses.len())
    }

    /// Contexts of clauses that are not there, and turns without clauses; empty where there are
    /// none.
    pub fn problems(&self) -> Vec<String> {
        let clauses = self.turns.iter().flat_map(|turn| &turn.clauses);
        let contexts = clauses.filter_map(|clause| clause.details.context);
        let contexts = contexts.filter(|place| !self.has(*place)).map(no_statement);
        let bare = self.turns.iter().filter(|turn| turn.clauses.is_empty());
        let bare = bare.map(|turn| format!("turn {} has no clause", turn.place));
        contexts.chain(bare).collect()
    }
}

fn heading(number: &str, line: &str) -> Result<MeetingLabels, String> {
    let [meeting, commit, range] = fields(line)[..] else {
        return Err("a heading is meeting | commit | first-last turn".to_owned());
    };
    if meeting.strip_suffix(".json").is_none() {
        return Err(format!("`{meeting}` is no file of a meeting"));
    }
    let commit = commit.strip_prefix("commit ");
    let commit = commit.ok_or("the second field of a heading is a commit")?;
    let (first, last) = span_of(range)?;
    Ok(MeetingLabels {
        number: number.to_owned(),
        meeting: meeting.to_owned(),
        commit: digits(commit, COMMIT_DIGITS)?,
        range: first..=last,
        turns: Vec::new(),
        pairs: Vec::new(),
    })
}

/// Two numbers with a hyphen between them.
fn span_of(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once('-');
    let (first, last) = parts.ok_or_else(|| format!("`{text}` is no range such as 0-12"))?;
    Ok((number(first)?, number(last)?))
}

fn digits(text: &str, count: usize) -> Result<String, String> {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    match text.len() == count && text.bytes().all(is_hex) {
        true => Ok(text.to_owned()),
        false => Err(format!("`{text}` is not {count} hexadecimal digits")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memfleet_domain::statement::StatementRelation;

    const LABELS: &str = "\
## data/a.json | commit 0123456789012345678901234567890123456789 | 4-9
@ 4 20 0a1b2c3d
- 0-8 | state | me | keep
- 9-20 | question | thing | neg ctx=4.0
@ 7 5 00000000
- 0-5 | small | us
> 7.0 adds 4.1
";

    #[test]
    fn labels_are_read() {
        let labels = MeetingLabels::read("01", LABELS).unwrap();
        assert_eq!(
            (&*labels.meeting, labels.range.clone()),
            ("data/a.json", 4..=9)
        );
        let [first, second] = &labels.turns[..] else {
            panic!("{labels:?}");
        };
        assert_eq!(
            (first.place, first.characters, &*first.hash),
            (4, 20, "0a1b2c3d")
        );
        let clause = &first.clauses[1];
        assert_eq!(
            (clause.start, clause.end, clause.owner),
            (9, 20, StatementOwner::Thing)
        );
        assert!(clause.details.is_negated && first.clauses[0].details.is_kept);
        assert_eq!(second.clauses.len(), 1);
        assert_eq!(labels.pairs[0].relation, StatementRelation::Adds);
        assert!(labels.problems().is_empty());
    }

    #[test]
    fn a_fault_names_its_line_and_the_field() {
        for (line, problem) in [
            ("## a", "a file has one heading, in the first line"),
            ("@ 8 5", "a turn is place, characters and hash"),
            (
                "@ 10 5 00000000",
                "turn 10 is out of the range of the heading",
            ),
            ("@ 7 5 00000000", "turn 7 does not come behind the last one"),
            ("@ 8 5 0000", "`0000` is not 8 hexadecimal digits"),
            (
                "- words of the source | small | us",
                "`words of the source` is no range such as 0-12",
            ),
            ("- 4-5 | small | us", "4-5 is no span between 5 and 5"),
            ("- 5-6 | smell | us", "`smell` is not a kind of statement"),
            ("- 5-6 | small | Ilse", "`Ilse` is not a class of owner"),
            (
                "- 5-6 | small | us | kept",
                "`kept` is no detail of a statement",
            ),
            (
                "- 5-6 | small",
                "a clause is start-end | kind | owner | details",
            ),
            ("> 7.1 adds 4.1", "there is no statement 7.1"),
            ("> 4.0 adds 4.1", "the first statement is not later"),
            ("> 7.0 add 4.1", "`add` is not a relation"),
            ("? 7.0", "`?` begins no line of labels"),
        ] {
            let error = MeetingLabels::read("01", &format!("{LABELS}{line}")).unwrap_err();
            assert_eq!((error.line, &*error.problem), (8, problem));
        }
        for (text, problem) in [
            ("", "the file is empty"),
            (
                "@ 4 20 0a1b2c3d",
                "a file has one heading, in the first line",
            ),
            (
                "## a.json | 4-9",
                "a heading is meeting | commit | first-last turn",
            ),
            (
                "## a.txt | commit 0 | 4-9",
                "`a.txt` is no file of a meeting",
            ),
            (
                "## a.json | 0 | 4-9",
                "the second field of a heading is a commit",
            ),
            (
                "## a.json | commit 0 | 4-9",
                "`0` is not 40 hexadecimal digits",
            ),
        ] {
            let error = MeetingLabels::read("01", text).unwrap_err();
            assert_eq!((error.line, &*error.problem), (1, problem));
        }
    }

    #[test]
    fn a_context_that_is_not_there_is_told() {
        let text = LABELS.replace("ctx=4.0", "ctx=5.0");
        let labels = MeetingLabels::read("01", &format!("{text}@ 8 5 00000000\n")).unwrap();
        assert_eq!(
            labels.problems(),
            ["there is no statement 5.0", "turn 8 has no clause"]
        );
    }
}
