//! Words around values, by the name of their list in `data/shapes.txt`; those of several words are joined by "_".

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::super::words::{Word, lines};

/// Words around values, by the name of their list; those of several words are joined by "_".
static AROUND: LazyLock<HashMap<&str, HashSet<&str>>> = LazyLock::new(|| {
    let lists = lines(include_str!("../../../data/shapes.txt"));
    lists
        .map(|(name, words)| (name, words.split_whitespace().collect()))
        .collect()
});

pub fn is_among(list: &str, word: &str) -> bool {
    AROUND.get(list).is_some_and(|words| words.contains(word))
}

/// Whether words of this list are in a sentence.
pub fn has_any(list: &str, words: &[Word]) -> bool {
    (0..words.len()).any(|at| {
        (1..=3).any(|length| {
            words
                .get(at..at + length)
                .is_some_and(|run| is_among(list, &joined(run)))
        })
    })
}

pub fn joined(words: &[Word]) -> String {
    let lows: Vec<&str> = words.iter().map(|word| word.low.as_str()).collect();
    lows.join("_")
}
