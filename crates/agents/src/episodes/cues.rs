//! First words that continue a matter, and words that ask to close one, by language (`data/continuations.txt`).

use std::collections::HashMap;
use std::sync::LazyLock;

use memfleet_language::{Language, fold};

/// The cues of one language; a language without lists has none, and every turn of the user opens a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Cues {
    opens: Vec<Vec<&'static str>>,
    asks: Vec<Vec<&'static str>>,
}

static LISTS: LazyLock<HashMap<&str, Cues>> = LazyLock::new(|| {
    let mut lists: HashMap<&str, Cues> = HashMap::new();
    for line in include_str!("../../data/continuations.txt").lines() {
        let Some((head, entries)) = line.split_once(':') else {
            continue;
        };
        let (language, kind) = head.split_once(' ').unwrap_or((head, ""));
        let cues = lists.entry(language).or_default();
        let sequences = entries
            .split_whitespace()
            .map(|entry| entry.split('_').collect());
        match kind {
            "asks" => cues.asks.extend(sequences),
            _ => cues.opens.extend(sequences),
        }
    }
    lists
});

impl Cues {
    pub(super) fn of(language: Language) -> Self {
        LISTS.get(language.code()).cloned().unwrap_or_default()
    }

    /// Whether the first words acknowledge or continue.
    pub(super) fn continues(&self, text: &str) -> bool {
        let words = words(text);
        let words: Vec<&str> = words.split_whitespace().collect();
        self.opens
            .iter()
            .any(|cue| words.starts_with(cue.as_slice()))
    }

    /// Whether it asks to sum up.
    pub(super) fn asks(&self, text: &str) -> bool {
        let words = words(text);
        let words: Vec<&str> = words.split_whitespace().collect();
        self.asks
            .iter()
            .any(|cue| words.windows(cue.len()).any(|window| window == cue))
    }
}

/// The folded words, with spaces between.
fn words(text: &str) -> String {
    let letters = |letter: char| {
        if letter.is_alphanumeric() {
            letter
        } else {
            ' '
        }
    };
    fold(text).chars().map(letters).collect()
}
