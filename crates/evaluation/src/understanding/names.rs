//! Turns whose names are marked.

use std::ops::Range;

use memfleet_domain::statement::NameKind;

use super::SpokenText;
use super::lines::LineError;

/// A turn with its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedTurn {
    /// Tag of the language.
    pub language: String,
    /// Speaker and words, without the marks.
    pub said: SpokenText,
    /// Names in the words, in order; none overlap.
    pub names: Vec<MarkedName>,
}

/// A name in a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkedName {
    /// Bytes of the turn's words.
    pub bytes: Range<usize>,
    /// Kind of what it names.
    pub kind: NameKind,
}

impl NamedTurn {
    /// Reads the turns of a file, one a line. Fails at the first line that is not of the format.
    pub fn read(text: &str) -> Result<Vec<Self>, LineError> {
        let lines = text.lines().zip(1..);
        let turns = lines.filter(|(text, _)| !text.trim().is_empty());
        let read =
            |(text, line)| Self::read_line(text).map_err(|problem| LineError { line, problem });
        turns.map(read).collect()
    }

    fn read_line(line: &str) -> Result<Self, String> {
        let mut fields = line.splitn(3, " | ");
        let (Some(language), Some(speaker), Some(marked)) =
            (fields.next(), fields.next(), fields.next())
        else {
            return Err("a turn is language | speaker | text".to_owned());
        };
        let (text, names) = unmarked(marked.trim())?;
        Ok(Self {
            language: language.to_owned(),
            said: SpokenText {
                speaker: speaker.trim_start_matches('*').to_owned(),
                is_assistant: speaker.starts_with('*'),
                text,
            },
            names,
        })
    }
}

/// Text without its marks, and the names that they mark.
fn unmarked(marked: &str) -> Result<(String, Vec<MarkedName>), String> {
    let mut text = String::new();
    let mut names = Vec::new();
    let mut rest = marked;
    while let Some((before, kind, behind)) = next_mark(rest) {
        let (name, after) = behind
            .split_once(']')
            .filter(|(name, _)| !name.is_empty() && name.trim() == *name && !name.contains('['))
            .ok_or_else(|| format!("`[{}:{behind}` marks no name", kind.name()))?;
        text.push_str(before);
        let start = text.len();
        text.push_str(name);
        names.push(MarkedName {
            bytes: start..text.len(),
            kind,
        });
        rest = after;
    }
    text.push_str(rest);
    Ok((text, names))
}

/// Text before the first mark, its kind, and the text behind its colon.
fn next_mark(text: &str) -> Option<(&str, NameKind, &str)> {
    text.match_indices('[').find_map(|(at, _)| {
        let (kind, behind) = text[at + 1..].split_once(':')?;
        Some((&text[..at], NameKind::named(kind)?, behind))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_read_with_its_names() {
        let text = "en | Ilse | Off to [place:Emden] with [person:Uncle Theo] [sic: late]\n\n\
            zh | *助手 | 找[person:阿杰]\n";
        let turns = NamedTurn::read(text).unwrap();
        let names = |turn: &NamedTurn| {
            let names = turn.names.iter();
            let named =
                names.map(|it| (it.kind.name(), turn.said.text[it.bytes.clone()].to_owned()));
            named.collect::<Vec<_>>()
        };
        assert_eq!(
            turns[0].said.text,
            "Off to Emden with Uncle Theo [sic: late]"
        );
        let expected = [("place", "Emden"), ("person", "Uncle Theo")];
        assert_eq!(
            names(&turns[0]),
            expected.map(|(kind, name)| (kind, name.to_owned()))
        );
        assert!(turns[1].said.is_assistant);
        assert_eq!(names(&turns[1]), [("person", "阿杰".to_owned())]);
    }

    #[test]
    fn a_line_that_is_not_of_the_format_is_told() {
        for (text, problem) in [
            ("en | Ilse", "a turn is language | speaker | text"),
            (
                "en | Ilse | in [place:Emden",
                "`[place:Emden` marks no name",
            ),
            (
                "en | Ilse | in [place: Emden]",
                "`[place: Emden]` marks no name",
            ),
        ] {
            let error = NamedTurn::read(text).unwrap_err();
            assert_eq!((error.line, error.problem.as_str()), (1, problem));
        }
    }
}
