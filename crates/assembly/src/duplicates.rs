//! Duplicates: a turn that says what one already chosen says.

use memfleet_language::fold;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

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
    seen: HashMap<usize, Seen>,
    holders: HashMap<u64, Vec<usize>>,
}

struct Seen {
    shingles: usize,
    numbers: u64,
}

impl Duplicates {
    /// Which earlier text this one repeats; if none, remembers it as `index`. Equal means the same speaker and the same
    /// words after folding; nearly equal means almost all shingles and the same figures in common, so that "at 5" and
    /// "at 6" both stay.
    pub(crate) fn check(&mut self, index: usize, speaker: &str, text: &str) -> Option<usize> {
        let folded = fold(text);
        let words: Vec<&str> = folded.split_whitespace().collect();
        let exact = hash(&(speaker, &words));
        if let Some(&earlier) = self.exact.get(&exact) {
            return Some(earlier);
        }
        let shingles: HashSet<u64> = words
            .windows(SHINGLE)
            .map(|window| hash(&(speaker, window)))
            .collect();
        let figures = words
            .iter()
            .filter(|word| word.contains(char::is_numeric))
            .collect::<Vec<_>>();
        let numbers = hash(&figures);
        if let Some(earlier) = self.near(&shingles, numbers) {
            return Some(earlier);
        }
        self.exact.insert(exact, index);
        if shingles.len() >= MINIMUM_SHINGLES {
            self.seen.insert(
                index,
                Seen {
                    shingles: shingles.len(),
                    numbers,
                },
            );
            for shingle in shingles {
                self.holders.entry(shingle).or_default().push(index);
            }
        }
        None
    }

    fn near(&self, shingles: &HashSet<u64>, numbers: u64) -> Option<usize> {
        if shingles.len() < MINIMUM_SHINGLES {
            return None;
        }
        let mut common: HashMap<usize, usize> = HashMap::new();
        for holder in shingles
            .iter()
            .filter_map(|shingle| self.holders.get(shingle))
            .flatten()
        {
            *common.entry(*holder).or_default() += 1;
        }
        let is_near = |(holder, common): (&usize, &usize)| {
            let seen = self.seen.get(holder)?;
            let union = shingles.len() + seen.shingles - common;
            (seen.numbers == numbers && *common as f32 >= NEAR * union as f32).then_some(*holder)
        };
        // The least index, so that the answer does not depend on the order of the map.
        common.iter().filter_map(is_near).min()
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "Last Saturday we walked around the big lake with the two dogs and then had soup at the small inn by the old mill until it got dark and we drove home again";

    #[test]
    fn the_same_words_of_the_same_speaker_are_a_duplicate() {
        let mut duplicates = Duplicates::default();
        assert_eq!(duplicates.check(0, "Ann", "I love  Pizza"), None);
        assert_eq!(duplicates.check(1, "Ann", "i love pizza"), Some(0));
        assert_eq!(duplicates.check(2, "Bob", "I love pizza"), None);
    }

    #[test]
    fn near_copies_are_duplicates_unless_a_figure_or_much_text_differs() {
        let mut duplicates = Duplicates::default();
        assert_eq!(duplicates.check(0, "Ann", LONG), None);
        assert_eq!(duplicates.check(1, "Ann", &format!("{LONG}!")), Some(0));
        assert_eq!(duplicates.check(2, "Ann", &format!("{LONG} 5")), None);
        assert_eq!(
            duplicates.check(
                3,
                "Ann",
                &format!("{LONG} and all the next week it rained so we stayed at home")
            ),
            None
        );
        assert_eq!(duplicates.check(4, "Ann", "so it goes"), None);
        assert_eq!(duplicates.check(5, "Ann", "so it went"), None);
    }
}
