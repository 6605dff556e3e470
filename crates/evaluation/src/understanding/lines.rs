//! Parts that the formats of the corpus have in common: lines with a mark, fields, names, times.

use chrono::NaiveDateTime;

use memfleet_domain::statement::StatementRelation;

use super::{SpokenText, StatementDetails, StatementPair, StatementPlace};

/// Format of times.
const TIME: &str = "%Y-%m-%dT%H:%M";

/// A line that cannot be read, or that contradicts one before it.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("line {line}: {problem}")]
pub struct LineError {
    /// The line, from 1.
    pub line: usize,
    /// The fault, and the field.
    pub problem: String,
}

/// Hands the mark, the rest and the number of every line that is not empty to a reader, until it
/// fails.
pub(super) fn read_lines(
    text: &str,
    mut reader: impl FnMut(&str, &str, usize) -> Result<(), String>,
) -> Result<(), LineError> {
    for (text, line) in text.lines().map(str::trim_end).zip(1..) {
        let read = match text.split_once(' ') {
            Some((mark, rest)) => reader(mark, rest, line),
            None if text.is_empty() => Ok(()),
            None => Err(format!("`{text}` is no line of the format")),
        };
        read.map_err(|problem| LineError { line, problem })?;
    }
    Ok(())
}

/// Fields between bars.
pub(super) fn fields(line: &str) -> Vec<&str> {
    line.split('|').map(str::trim).collect()
}

/// Speaker, colon and text; `*` before an assistant.
pub(super) fn spoken(line: &str) -> Result<SpokenText, String> {
    let parts = line.split_once(": ");
    let (speaker, text) = parts.ok_or_else(|| format!("`{line}` is no speaker, colon and text"))?;
    Ok(SpokenText {
        speaker: speaker.trim_start_matches('*').to_owned(),
        is_assistant: speaker.starts_with('*'),
        text: text.trim().to_owned(),
    })
}

/// Details of a statement, separated by spaces.
pub(super) fn details(words: &str) -> Result<StatementDetails, String> {
    let mut details = StatementDetails::default();
    for word in words.split_whitespace() {
        match word.split_once('=') {
            None if word == "neg" => details.is_negated = true,
            None if word == "keep" => details.is_kept = true,
            Some(("from", value)) => details.from = Some(date(value)?),
            Some(("until", value)) => details.until = Some(date(value)?),
            Some(("ctx", value)) => details.context = Some(place(value)?),
            _ => return Err(format!("`{word}` is no detail of a statement")),
        }
    }
    Ok(details)
}

/// Later statement, relation, earlier statement; without a date.
pub(super) fn pair(text: &str) -> Result<StatementPair, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [later, relation, earlier] = words[..] else {
        return Err("a pair is later, relation, earlier".to_owned());
    };
    Ok(StatementPair {
        later: place(later)?,
        relation: named(relation, StatementRelation::named, "a relation")?,
        earlier: place(earlier)?,
        since: None,
    })
}

/// The item of a name.
pub(super) fn named<T>(name: &str, of: fn(&str) -> Option<T>, thing: &str) -> Result<T, String> {
    of(name).ok_or_else(|| format!("`{name}` is not {thing}"))
}

/// A time to the minute.
pub(super) fn time(text: &str) -> Result<NaiveDateTime, String> {
    let time = NaiveDateTime::parse_from_str(text, TIME);
    time.map_err(|_| format!("`{text}` is no time such as 2025-01-14T18:40"))
}

/// A year, a month or a day.
pub(super) fn date(text: &str) -> Result<String, String> {
    let mut parts = text.split('-').zip([4, 2, 2]);
    let is_date = text.split('-').count() <= 3
        && parts.all(|(part, digits)| {
            part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit())
        });
    match is_date {
        true => Ok(text.to_owned()),
        false => Err(format!("`{text}` is no year, month or day")),
    }
}

fn place(text: &str) -> Result<StatementPlace, String> {
    let parts = text.split_once('.');
    let (turn, place) = parts.ok_or_else(|| format!("`{text}` is no place such as 2.1"))?;
    Ok(StatementPlace {
        turn: number(turn)?,
        place: number(place)?,
    })
}

/// Places of turns that state a right answer (`e=1,2`) and of those that state a wrong one (`s=0`).
pub(super) fn places(lists: &str) -> Result<[Vec<usize>; 2], String> {
    let mut places = [Vec::new(), Vec::new()];
    for list in lists.split_whitespace() {
        let at = match list.split_once('=') {
            Some(("e", list)) => (0, list),
            Some(("s", list)) => (1, list),
            _ => return Err(format!("`{list}` is neither e= nor s=")),
        };
        let numbers = at.1.split(',').filter(|it| !it.is_empty());
        places[at.0] = numbers.map(number).collect::<Result<_, _>>()?;
    }
    Ok(places)
}

/// A number from 0.
pub(super) fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("`{text}` is no number"))
}
