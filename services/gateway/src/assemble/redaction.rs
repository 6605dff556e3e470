//! What a policy keeps out of sight: words that match its patterns are shown, and captured, as `[redacted]` (AMP item 113).

use std::ops::Range;

use memfleet_domain::Fault;
use regex::{Regex, RegexBuilder};

/// Shown in the place of what matches.
const MARK: &str = "[redacted]";
/// Bytes that a compiled pattern may take: what is larger is refused instead of slowing every call.
const SIZE: usize = 256 << 10;

/// Patterns, ready to be used.
#[derive(Debug, Default)]
pub struct Redactions(Vec<Regex>);

impl Redactions {
    /// Compiles patterns; each runs in time that grows with the text only.
    pub fn new(patterns: &[String]) -> Result<Self, Fault> {
        let compile = |(at, pattern): (usize, &String)| {
            RegexBuilder::new(pattern)
                .size_limit(SIZE)
                .build()
                .map_err(|error| {
                    let field = format!("policy.format.redactions[{at}]");
                    Fault::invalid(field, format!("is no regular expression: {error}"))
                })
        };
        let patterns: Result<_, _> = patterns.iter().enumerate().map(compile).collect();
        patterns.map(Self)
    }

    /// What tells these patterns from others.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new_derive_key("memfleet gateway 2026 redactions");
        for pattern in &self.0 {
            hasher.update(&(pattern.as_str().len() as u64).to_be_bytes());
            hasher.update(pattern.as_str().as_bytes());
        }
        hasher.finalize().to_hex()[..32].to_owned()
    }

    /// The text without what matches.
    pub fn apply(&self, text: String) -> String {
        let replace = |text: String, pattern: &Regex| match pattern.replace_all(&text, MARK) {
            std::borrow::Cow::Borrowed(_) => text,
            std::borrow::Cow::Owned(replaced) => replaced,
        };
        self.0.iter().fold(text, replace)
    }

    /// The parts of one message, a line each, without what matches: in a part, in the lines together, or in what parts say that follow each other
    /// without a break, since a secret may be cut where a client cuts its message.
    pub fn apply_to_parts(&self, parts: &[String]) -> String {
        let whole = parts.concat();
        let seams = seams(parts);
        let crossing = |found: &Range<usize>| {
            let next = seams.partition_point(|seam| *seam <= found.start);
            seams.get(next).is_some_and(|seam| *seam < found.end)
        };
        let found = self.0.iter().flat_map(|pattern| pattern.find_iter(&whole));
        let found: Vec<_> = found.map(|it| it.range()).filter(crossing).collect();
        self.apply(lines(&whole, &seams, merged(found)))
    }
}

/// Where one part ends and the next begins, in all of them together.
fn seams(parts: &[String]) -> Vec<usize> {
    let mut end = 0;
    let ends = parts.iter().map(|part| {
        end += part.len();
        end
    });
    ends.take(parts.len().saturating_sub(1)).collect()
}

/// The ranges in order, those that overlap as one.
fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, before| {
        let overlaps = next.start < before.end;
        if overlaps {
            before.end = before.end.max(next.end);
        }
        overlaps
    });
    ranges
}

/// A text with a line break at each seam, and the mark in the place of each range.
fn lines(whole: &str, seams: &[usize], hidden: Vec<Range<usize>>) -> String {
    let mut text = String::with_capacity(whole.len() + seams.len());
    let mut breaks = seams.iter().copied().peekable();
    let mut at = 0;
    let mut copy = |text: &mut String, from: usize, to: usize| {
        let mut from = from;
        while let Some(seam) = breaks.next_if(|seam| *seam <= to) {
            // A seam before `from` was hidden.
            if seam >= from {
                text.push_str(&whole[from..seam]);
                text.push('\n');
                from = seam;
            }
        }
        text.push_str(&whole[from..to]);
    };
    for range in hidden {
        copy(&mut text, at, range.start);
        text.push_str(MARK);
        at = range.end;
    }
    copy(&mut text, at, whole.len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matches_is_not_shown_and_a_wrong_pattern_is_named() {
        let patterns = ["sk-[A-Za-z0-9]+".to_owned(), r"\b\d{4} \d{4}\b".to_owned()];
        let redactions = Redactions::new(&patterns).unwrap();
        let text = "The key is sk-abc123, the card 1234 5678.".to_owned();
        let shown = "The key is [redacted], the card [redacted].";
        assert_eq!(redactions.apply(text), shown);
        let error = Redactions::new(&["fine".to_owned(), "(".to_owned()]).unwrap_err();
        assert_eq!(error.fields[0].field, "policy.format.redactions[1]");
    }

    #[test]
    fn what_is_cut_by_the_parts_of_a_message_is_not_shown() {
        let patterns = ["sk-[a-z]+", r"(?s)BEGIN.*END", r"\bpin \d{4}\b"].map(str::to_owned);
        let redactions = Redactions::new(&patterns).unwrap();
        let shown = |parts: &[&str]| {
            let parts: Vec<_> = parts.iter().map(|&part| part.to_owned()).collect();
            redactions.apply_to_parts(&parts)
        };
        assert_eq!(shown(&["a sk-abc", "DEF"]), "a [redacted]\nDEF");
        assert_eq!(shown(&["a sk-ab", "cd", "ef. b"]), "a [redacted]. b");
        assert_eq!(
            shown(&["the pin 12", "34 and", "ä pin 5678"]),
            "the [redacted] and\nä [redacted]"
        );
        assert_eq!(shown(&["x BEGIN a", "b END y"]), "x [redacted] y");
        assert_eq!(shown(&["BEGIN sk-", "abc END", "z"]), "[redacted]\nz");
        assert_eq!(shown(&["plain", "words"]), "plain\nwords");
        assert_eq!(shown(&["one"]), "one");
        assert_eq!(shown(&[]), "");
    }
}
