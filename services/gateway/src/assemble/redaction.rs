//! What a policy keeps out of sight: words that match its patterns are shown as `[redacted]` (AMP item 113).

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

    /// The text without what matches.
    pub fn apply(&self, text: String) -> String {
        let replace = |text: String, pattern: &Regex| match pattern.replace_all(&text, MARK) {
            std::borrow::Cow::Borrowed(_) => text,
            std::borrow::Cow::Owned(replaced) => replaced,
        };
        self.0.iter().fold(text, replace)
    }
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
}
