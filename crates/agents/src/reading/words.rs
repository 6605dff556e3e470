//! A text's words, as the rules for queries look at them.

use std::ops::Range;

use chrono_tz::Tz;
use memfleet_domain::time::Timestamp;
use memfleet_language::{Language, fold, time};

/// A run of letters and digits.
#[derive(Debug, Clone)]
pub(super) struct Word {
    /// Bytes of the text.
    pub(super) span: Range<usize>,
    pub(super) folded: String,
    pub(super) is_capital: bool,
    /// It is part of a time expression.
    pub(super) is_time: bool,
    /// What stands between it and the word before.
    pub(super) gap: Gap,
}

/// What stands before a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gap {
    /// The end of a sentence, or nothing.
    Sentence,
    /// Blanks or a hyphen.
    Blank,
    /// Another sign.
    Sign,
}

/// A text and its words.
pub(super) struct Text<'t> {
    pub(super) text: &'t str,
    pub(super) words: Vec<Word>,
}

impl<'t> Text<'t> {
    /// `now` and `zone` place time expressions.
    pub(super) fn new(text: &'t str, now: Timestamp, zone: Tz, language: Language) -> Self {
        let times = time::references(text, now, zone, language);
        let mut words: Vec<Word> = Vec::new();
        for span in runs(text) {
            let between = words.last().map(|word| &text[word.span.end..span.start]);
            words.push(Word {
                folded: fold(&text[span.clone()]),
                is_capital: text[span.clone()].starts_with(char::is_uppercase),
                is_time: times.iter().any(|time| time.span.contains(&span.start)),
                gap: between.map_or(Gap::Sentence, gap),
                span,
            });
        }
        Self { text, words }
    }

    /// The text from the first of some words to the last.
    pub(super) fn slice(&self, words: Range<usize>) -> &'t str {
        match self.words.get(words) {
            Some([first, .., last]) => &self.text[first.span.start..last.span.end],
            Some([only]) => &self.text[only.span.clone()],
            _ => "",
        }
    }

    /// The folded word at a place.
    pub(super) fn at(&self, place: usize) -> Option<&str> {
        self.words.get(place).map(|word| word.folded.as_str())
    }

    /// The folded word before a place.
    pub(super) fn before(&self, place: usize) -> Option<&str> {
        self.at(place.checked_sub(1)?)
    }
}

fn gap(between: &str) -> Gap {
    let is_blank = |sign: char| sign.is_whitespace() || sign == '-';
    if between.contains(['.', '!', '?', '\n', '…']) {
        Gap::Sentence
    } else if between.chars().all(is_blank) {
        Gap::Blank
    } else {
        Gap::Sign
    }
}

/// Spans of letters and digits.
fn runs(text: &str) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, letter) in text.char_indices() {
        let end = at + letter.len_utf8();
        match runs.last_mut() {
            _ if !letter.is_alphanumeric() => {}
            Some(run) if run.end == at => run.end = end,
            _ => runs.push(at..end),
        }
    }
    runs
}
