//! Duplicates: a turn that says what one already chosen says.

use crate::common::Common;
use crate::hash::hash;
use memfleet_language::fold;
use std::collections::{HashMap, HashSet};

/// Words in a shingle.
const SHINGLE: usize = 3;
/// Two texts are near duplicates from this Jaccard index of their shingles.
const NEAR: f32 = 0.9;
/// A shorter text is a duplicate only if it is the same: few shingles say little.
const MINIMUM_SHINGLES: usize = 8;

/// The texts seen so far, by speaker.
#[derive(Default)]
pub(crate) struct Duplicates {
    exact: HashMap<u64, usize>,
    /// Those that are long enough to be like others, by their numbers in `common`.
    seen: Vec<Seen>,
    common: Common,
}

struct Seen {
    index: usize,
    shingles: usize,
    numbers: u64,
}

/// What a text is compared by: who says it, and its words after folding.
pub(crate) struct Fingerprint<'a> {
    speaker: &'a str,
    folded: String,
    exact: u64,
}

impl<'a> Fingerprint<'a> {
    pub(crate) fn of(speaker: &'a str, text: &str) -> Self {
        let folded = fold(text);
        let words: Vec<&str> = folded.split_whitespace().collect();
        Self {
            exact: hash(&(speaker, &words)),
            speaker,
            folded,
        }
    }

    fn shingles(&self) -> Shingles {
        let words: Vec<&str> = self.folded.split_whitespace().collect();
        let shingle = |window| hash(&(self.speaker, window));
        let figures: Vec<_> = words
            .iter()
            .filter(|word| word.contains(char::is_numeric))
            .collect();
        Shingles {
            all: words.windows(SHINGLE).map(shingle).collect(),
            numbers: hash(&figures),
        }
    }
}

/// The runs of three words of a text, and the figures in it.
struct Shingles {
    all: HashSet<u64>,
    numbers: u64,
}

impl Duplicates {
    /// Which earlier text has the same speaker and the same words.
    pub(crate) fn exact(&self, print: &Fingerprint<'_>) -> Option<usize> {
        self.exact.get(&print.exact).copied()
    }

    /// Which earlier text has these words, or almost all shingles and the same figures, so that "at 5" and "at 6" both stay; if none,
    /// remembers this one as `index`.
    pub(crate) fn check(&mut self, index: usize, print: &Fingerprint<'_>) -> Option<usize> {
        if let Some(earlier) = self.exact(print) {
            return Some(earlier);
        }
        let shingles = print.shingles();
        let earlier = self.like(&shingles);
        if earlier.is_none() {
            self.exact.insert(print.exact, index);
            self.insert(index, shingles);
        }
        earlier
    }

    fn insert(&mut self, index: usize, shingles: Shingles) {
        if shingles.all.len() < MINIMUM_SHINGLES {
            return;
        }
        self.seen.push(Seen {
            index,
            shingles: shingles.all.len(),
            numbers: shingles.numbers,
        });
        self.common.insert(shingles.all);
    }

    fn like(&self, shingles: &Shingles) -> Option<usize> {
        if shingles.all.len() < MINIMUM_SHINGLES {
            return None;
        }
        let common = self.common.counts(shingles.all.iter().copied());
        let is_near = |(seen, common): (&Seen, u32)| {
            let union = shingles.all.len() + seen.shingles - common as usize;
            let near = common as f32 >= NEAR * union as f32;
            (near && seen.numbers == shingles.numbers).then_some(seen.index)
        };
        // The least index, so that the answer does not depend on the order of choice.
        self.seen.iter().zip(common).filter_map(is_near).min()
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
        duplicates.check(index, &Fingerprint::of(speaker, text))
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
    fn amp_083_near_copies_are_duplicates_unless_a_figure_or_much_text_differs() {
        let mut duplicates = Duplicates::default();
        assert_eq!(check(&mut duplicates, 0, "Ann", LONG), None);
        assert_eq!(
            check(&mut duplicates, 1, "Ann", &format!("{LONG}!")),
            Some(0)
        );
        assert_eq!(check(&mut duplicates, 2, "Ann", &format!("{LONG} 5")), None);
        assert_eq!(
            check(
                &mut duplicates,
                3,
                "Ann",
                &format!("{LONG} and all the next week it rained so we stayed at home")
            ),
            None
        );
        assert_eq!(check(&mut duplicates, 4, "Ann", "so it goes"), None);
        assert_eq!(check(&mut duplicates, 5, "Ann", "so it went"), None);
    }
}
