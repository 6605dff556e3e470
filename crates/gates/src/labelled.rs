//! Utterances whose right answer is known, to measure the gates with: files of tab-separated lines, as docs/gates.md describes them.

/// What an utterance is, which says what a gate may do with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Expected {
    /// Memory may matter: no gate may skip it.
    Ask,
    /// There is nothing to ask memory for.
    Skip,
    /// Either is right: general knowledge, and tasks on text that is given.
    Either,
}

/// Kinds and what is expected of them.
const KINDS: &[(&str, Expected)] = &[
    ("recall", Expected::Ask),
    ("personal", Expected::Ask),
    ("question", Expected::Ask),
    ("task", Expected::Ask),
    ("statement", Expected::Ask),
    ("follow_up", Expected::Ask),
    ("short", Expected::Ask),
    ("general", Expected::Either),
    ("small_talk", Expected::Skip),
    ("command", Expected::Skip),
    ("code", Expected::Skip),
    ("empty", Expected::Skip),
];

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labelled {
    /// Its kind, as in the file.
    pub kind: String,
    /// What is expected of that kind.
    pub expected: Expected,
    /// ISO 639-1; `mixed` for several in one text, `und` for none.
    pub language: String,
    /// Whether turns came before.
    pub has_history: bool,
    /// The text, with its escapes resolved.
    pub text: String,
}

/// A line that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct Malformed {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: &'static str,
}

/// Reads a file; empty lines and those that begin with `#` are passed over.
pub fn parse(file: &str) -> Result<Vec<Labelled>, Malformed> {
    let lines = file.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let read = |(place, line)| {
        parse_line(line).map_err(|problem| Malformed {
            line: place + 1,
            problem,
        })
    };
    lines.map(read).collect()
}

fn parse_line(line: &str) -> Result<Labelled, &'static str> {
    let mut fields = line.splitn(4, '\t');
    let mut field = || fields.next().ok_or("has fewer than four fields");
    let (kind, language, history, text) = (field()?, field()?, field()?, field()?);
    let known = KINDS.iter().find(|(name, _)| *name == kind);
    let (_, expected) = known.ok_or("is of a kind that is not known")?;
    let has_history = match history {
        "0" => false,
        "1" => true,
        _ => return Err("has a history that is neither 0 nor 1"),
    };
    Ok(Labelled {
        kind: kind.to_owned(),
        expected: *expected,
        language: language.to_owned(),
        has_history,
        text: unescape(text).ok_or("has an escape that is none")?,
    })
}

/// Resolves `\n`, `\t` and `\u{hex}`. Another backslash stands for itself.
fn unescape(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let tail = &rest[at + 1..];
        rest = if let Some(tail) = tail.strip_prefix('n') {
            out.push('\n');
            tail
        } else if let Some(tail) = tail.strip_prefix('t') {
            out.push('\t');
            tail
        } else if let Some(tail) = tail.strip_prefix("u{") {
            let (hex, tail) = tail.split_once('}')?;
            out.push(char::from_u32(u32::from_str_radix(hex, 16).ok()?)?);
            tail
        } else {
            out.push('\\');
            tail
        };
    }
    out.push_str(rest);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_with_its_escapes() {
        let read = parse("# comment\n\nempty\tund\t1\t\\u{200b}a\\n\\tb \\d\n").unwrap();
        assert_eq!(read[0].text, "\u{200b}a\n\tb \\d");
        assert!(read[0].has_history && read[0].expected == Expected::Skip);
    }

    #[test]
    fn a_malformed_line_is_named() {
        for line in [
            "recall\ten\t0",
            "recal\ten\t0\tx",
            "recall\ten\t2\tx",
            "recall\ten\t0\t\\u{zz}",
        ] {
            assert_eq!(parse(&format!("#\n{line}")).unwrap_err().line, 2, "{line}");
        }
    }
}
