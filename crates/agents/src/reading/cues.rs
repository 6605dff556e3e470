//! Word lists of the retriever: `data/intents.txt` by language, `data/references.txt` for English.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use memfleet_language::Language;

use super::words::Text;

type Sequences = Vec<Vec<&'static str>>;

static INTENTS: LazyLock<HashMap<&str, Sequences>> = LazyLock::new(|| {
    let mut lists: HashMap<&str, Sequences> = HashMap::new();
    for (name, entries) in lists_of(include_str!("../../data/intents.txt")) {
        let sequences = entries
            .split_whitespace()
            .map(|entry| entry.split('_').collect());
        lists.entry(name).or_default().extend(sequences);
    }
    lists
});

static REFERENCES: LazyLock<HashMap<&str, HashSet<&str>>> = LazyLock::new(|| {
    let mut lists: HashMap<&str, HashSet<&str>> = HashMap::new();
    for (name, words) in lists_of(include_str!("../../data/references.txt")) {
        lists
            .entry(name)
            .or_default()
            .extend(words.split_whitespace());
    }
    lists
});

fn lists_of(data: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = data.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(':'))
}

/// The sequences of a kind in a language; a language without lists has none.
pub(super) fn sequences(language: Language, kind: &str) -> &'static [Vec<&'static str>] {
    let name = format!("{} {kind}", language.code());
    INTENTS.get(name.as_str()).map_or(&[], Vec::as_slice)
}

/// Whether a text has a sequence of the kind.
pub(super) fn has(text: &Text<'_>, language: Language, kind: &str) -> bool {
    sequences(language, kind).iter().any(|sequence| {
        text.words.windows(sequence.len()).any(|window| {
            let window = window.iter().map(|word| word.folded.as_str());
            window.eq(sequence.iter().copied())
        })
    })
}

/// Whether a word, if there is one, is on a list of references.
pub(super) fn is(word: Option<&str>, list: &str) -> bool {
    let words = REFERENCES.get(list);
    word.is_some_and(|word| words.is_some_and(|words| words.contains(word)))
}
