//! Duplicates: a turn that says what one already chosen says. Only punctuation, case and spaces may
//! differ: in a long note that was corrected, one other word is the news.

use crate::hash::hash;
use memfleet_language::fold;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The texts seen so far, by speaker and words.
#[derive(Default)]
pub(crate) struct Duplicates(HashMap<Said, usize>);

/// Key of a text and its speaker: equal of duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Said(u64);

impl Said {
    /// A text and who says it.
    pub fn of(speaker: &str, text: &str) -> Self {
        let folded = fold(text);
        let words = folded.split_whitespace().map(bare);
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        // In a text without words the signs count.
        match words.is_empty() {
            true => Self(hash(&(speaker, folded.trim()))),
            false => Self(hash(&(speaker, words))),
        }
    }
}

/// A word without the marks that only separate. A question mark makes a question, and the signs of
/// "C#" and "-5" are part of the word.
fn bare(word: &str) -> &str {
    const MARKS: [char; 16] = [
        '.', ',', ';', ':', '!', '"', '\'', '(', ')', '…', '“', '”', '‘', '’', '。', '、',
    ];
    word.trim_matches(MARKS)
}

impl Duplicates {
    /// Which earlier text says this; if none, remembers this one as `index`.
    pub(crate) fn check(&mut self, index: usize, said: Said) -> Option<usize> {
        match self.0.entry(said) {
            Entry::Occupied(earlier) => Some(*earlier.get()),
            Entry::Vacant(free) => {
                free.insert(index);
                None
            }
        }
    }

    /// Which earlier text says this.
    pub(crate) fn earlier(&self, said: Said) -> Option<usize> {
        self.0.get(&said).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an earlier text repeats; remembers it if none.
    fn check(
        duplicates: &mut Duplicates,
        index: usize,
        speaker: &str,
        text: &str,
    ) -> Option<usize> {
        duplicates.check(index, Said::of(speaker, text))
    }

    const LONG: &str = "Last Saturday we walked around the big lake with the two dogs and then had soup at the small inn by the old mill until it got dark and we drove home again";

    #[test]
    fn amp_082_the_same_words_of_the_same_speaker_are_a_duplicate() {
        let mut duplicates = Duplicates::default();
        assert_eq!(check(&mut duplicates, 0, "Ann", "I love  Pizza"), None);
        assert_eq!(check(&mut duplicates, 1, "Ann", "i love pizza"), Some(0));
        assert_eq!(check(&mut duplicates, 2, "Bob", "I love pizza"), None);
    }

    #[test]
    fn amp_083_texts_that_only_begin_alike_are_both_kept() {
        let mut duplicates = Duplicates::default();
        let one = format!("{LONG} {}", "and then it rained for days on end".repeat(3));
        let other = format!("{LONG} {}", "but nobody of us minded that at all".repeat(3));
        assert!(LONG.len() > 100);
        assert_eq!(check(&mut duplicates, 0, "Ann", &one), None);
        assert_eq!(check(&mut duplicates, 1, "Ann", &other), None);
    }

    #[test]
    fn amp_117_folding_that_changes_length_compares_alike() {
        let mut duplicates = Duplicates::default();
        assert_eq!(
            check(&mut duplicates, 0, "Ann", "İSTANBUL ﬁne STRASSE"),
            None
        );
        assert_eq!(
            check(&mut duplicates, 1, "Ann", "i\u{307}stanbul FINE strasse"),
            Some(0)
        );
    }

    #[test]
    fn amp_083_copies_with_other_marks_are_duplicates_and_one_other_word_is_news() {
        let mut duplicates = Duplicates::default();
        assert_eq!(check(&mut duplicates, 0, "Ann", LONG), None);
        for copy in [
            format!("{LONG}!"),
            format!("“{LONG}.”"),
            LONG.to_uppercase(),
            LONG.replace("lake", "lake,").replace(' ', "  "),
        ] {
            assert_eq!(check(&mut duplicates, 1, "Ann", &copy), Some(0), "{copy}");
        }
        for news in [
            format!("{LONG} 5"),
            format!("{LONG}?"),
            LONG.replace("two", "three"),
            LONG.replace("had soup", "had no soup"),
            LONG.replace("small inn", "inn"),
            LONG.replace("around the big lake", "the big lake around"),
        ] {
            assert_eq!(check(&mut duplicates, 2, "Ann", &news), None, "{news}");
        }
    }

    #[test]
    fn amp_083_signs_that_are_part_of_a_word_tell_texts_apart() {
        let mut duplicates = Duplicates::default();
        let texts = [
            "I write C",
            "I write C#",
            "I write C++",
            "-5",
            "5",
            "👍",
            "👎",
            "...",
            "!",
        ];
        for (index, text) in texts.into_iter().enumerate() {
            assert_eq!(check(&mut duplicates, index, "Ann", text), None, "{text}");
        }
    }
}
