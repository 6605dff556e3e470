//! Containment: whether a prompt says already what a memory says (AMP item 102).

use crate::common::Common;
use crate::hash::hash;
use memfleet_language::fold;
use std::collections::HashSet;
use unicode_segmentation::UnicodeSegmentation;

/// Words in a shingle.
const SHINGLE: usize = 4;
/// A message contains a text from this share of its shingles.
const CONTAINED: f64 = 0.9;

/// The messages of a prompt, ready to be asked for many memories.
#[derive(Clone, Debug, Default)]
pub struct Prompt {
    /// The messages as a whole.
    wholes: HashSet<u64>,
    shingles: Common,
}

impl Prompt {
    /// Reads the texts of the messages.
    pub fn of<'t>(messages: impl IntoIterator<Item = &'t str>) -> Self {
        let mut prompt = Self::default();
        for message in messages {
            let folded = fold(message);
            let words = words(&folded);
            prompt.wholes.insert(hash(&words));
            prompt.shingles.insert(shingles(&words));
        }
        prompt
    }

    /// Whether a message is this memory, or has nine tenths of its runs of four words. A memory of fewer than four words is in a
    /// message only if it is all of it: "yes" stands in many.
    pub fn contains(&self, memory: &str) -> bool {
        if self.wholes.is_empty() {
            return false;
        }
        let folded = fold(memory);
        let words = words(&folded);
        if words.is_empty() {
            return false;
        }
        self.wholes.contains(&hash(&words)) || self.contain_most(shingles(&words))
    }

    fn contain_most(&self, parts: HashSet<u64>) -> bool {
        let least = CONTAINED * parts.len() as f64;
        let is_any = !parts.is_empty();
        let counts = self.shingles.counts(parts);
        is_any && counts.into_iter().any(|count| f64::from(count) >= least)
    }
}

/// Whether a message says what a memory says.
pub fn contains(message: &str, memory: &str) -> bool {
    Prompt::of([message]).contains(memory)
}

/// The words of a folded text without punctuation; in scripts without spaces, its letters.
fn words(folded: &str) -> Vec<&str> {
    folded.unicode_words().collect()
}

fn shingles(words: &[&str]) -> HashSet<u64> {
    let windows = words.windows(SHINGLE);
    windows.map(|window| hash(&window)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: &str =
        "We moved the meeting to half past nine because the train from Leeds arrives late.";

    #[test]
    fn amp_102_the_same_text_is_contained_whatever_its_case_space_and_signs() {
        let shouted = MEMORY.to_uppercase().replace(' ', "  ").replace('.', "!");
        assert!(contains(&shouted, MEMORY));
        assert!(contains("YES", "yes."));
        assert!(
            contains("ﬁne, İstanbul straße", "Fine İstanbul strasse") || contains("ﬁne", "fine")
        );
    }

    #[test]
    fn amp_102_a_text_inside_a_longer_message_is_contained() {
        let message =
            format!("As I said before: {MEMORY} So please be there, and bring the contract.");
        assert!(contains(&message, MEMORY));
        assert!(contains(
            "我们把会议改到九点半，因为安娜的火车晚点。请准时到。",
            "我们把会议改到九点半"
        ));
    }

    #[test]
    fn amp_102_what_shares_only_words_or_a_part_is_not_contained() {
        assert!(!contains(
            "Which train did Anna take to the meeting?",
            MEMORY
        ));
        assert!(!contains(&MEMORY[..MEMORY.len() / 2], MEMORY));
        assert!(!contains("yes, the budget was approved", "yes"));
        assert!(!contains("", MEMORY) && !contains(MEMORY, "") && !contains("", ""));
        assert!(!contains("…", "!"));
    }
}
