//! The public byte-pair encodings, counted word by word.
//!
//! Their patterns cut a text wherever a space follows a letter or a sign, and no token reaches over a cut. So the tokens of what stands between
//! two such places can be counted alone and, since texts repeat their words, be remembered: most of a block is looked up.

use super::Count;
use quick_cache::sync::Cache;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use tiktoken_rs::{self as tiktoken, CoreBPE};

/// The longest piece in bytes: the patterns overflow their stack on runs of a million signs. Only a run without any place to cut is
/// cut in its middle, which may count a token too many.
const PIECE: usize = 1 << 15;
/// Words whose tokens are remembered, of each encoding …
const WORDS: usize = 1 << 16;
/// … and the longest of them in bytes.
const WORD: usize = 64;

/// A byte-pair encoding, and what is known of its words.
#[derive(Clone, Copy)]
pub(super) struct Encoding(&'static Known);

struct Known {
    encoding: &'static CoreBPE,
    /// By the hash of a word: a word that was forgotten as memory is not kept here either. The key of the hash is random, so
    /// nobody can write words that collide.
    words: Cache<u64, u32>,
    hasher: RandomState,
}

static KNOWN: [(&str, LazyLock<Known>); 4] = [
    (
        "o200k_base",
        LazyLock::new(|| Known::of(tiktoken::o200k_base_singleton())),
    ),
    (
        "cl100k_base",
        LazyLock::new(|| Known::of(tiktoken::cl100k_base_singleton())),
    ),
    (
        "p50k_base",
        LazyLock::new(|| Known::of(tiktoken::p50k_base_singleton())),
    ),
    (
        "r50k_base",
        LazyLock::new(|| Known::of(tiktoken::r50k_base_singleton())),
    ),
];

impl Known {
    fn of(encoding: &'static CoreBPE) -> Self {
        Self {
            encoding,
            words: Cache::new(WORDS),
            hasher: RandomState::new(),
        }
    }

    fn count(&self, text: &str) -> usize {
        self.encoding.encode_ordinary(text).len()
    }
}

impl Encoding {
    /// An encoding by its name; its vocabulary is loaded on first use.
    pub(super) fn named(name: &str) -> Option<Self> {
        let (_, known) = KNOWN.iter().find(|(known, _)| *known == name)?;
        Some(Self(known))
    }

    fn word(self, word: &str) -> usize {
        if word.len() > WORD {
            return pieces(word, PIECE).map(|piece| self.0.count(piece)).sum();
        }
        let key = self.0.hasher.hash_one(word);
        if let Some(tokens) = self.0.words.get(&key) {
            return tokens as usize;
        }
        let tokens = self.0.count(word);
        self.0.words.insert(key, tokens as u32);
        tokens
    }
}

impl Count for Encoding {
    fn count(&self, text: &str) -> usize {
        words(text).map(|word| self.word(word)).sum()
    }
}

/// A text from each place where a word ends before a space to the next.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut spaces = rest.match_indices(' ').map(|(at, _)| at);
        let end = spaces.find(|at| is_end(rest, *at));
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        (!word.is_empty()).then_some(word)
    })
}

/// Whether what stands before this place, of a space, is the end of a word.
fn is_end(text: &str, at: usize) -> bool {
    let before = text[..at].chars().next_back();
    before.is_some_and(|letter| !letter.is_whitespace())
}

/// A text in pieces of at most `most` bytes (at least 4), cut at word ends where there are any.
fn pieces(text: &str, most: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let piece = if rest.len() <= most {
            rest
        } else {
            let end = rest.floor_char_boundary(most);
            let word = word_end(&rest[..end]).unwrap_or(end);
            &rest[..word]
        };
        rest = &rest[piece.len()..];
        (!piece.is_empty()).then_some(piece)
    })
}

/// The last place in a text, after its first word, where a word ends before a space: no token of these encodings reaches over it.
pub(super) fn word_end(text: &str) -> Option<usize> {
    let mut spaces = text.rmatch_indices(' ').map(|(at, _)| at);
    spaces.find(|at| is_end(text, *at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn amp_078_a_text_in_pieces_has_the_tokens_of_the_whole(text in "([a-zA-Z'é世.!?)0-9\u{300}]{1,6}[ \n\t]{1,3}){0,60}", most in 24usize..120) {
            // Where every cut is at a word's end, as all are but in the middle of a very long run.
            let mut end = 0;
            let clean = pieces(&text, most).all(|piece| {
                end += piece.len();
                end == text.len() || (text[end..].starts_with(' ') && !piece.ends_with(char::is_whitespace))
            });
            prop_assume!(clean);
            for encoding in [tiktoken_rs::o200k_base_singleton(), tiktoken_rs::cl100k_base_singleton(), tiktoken_rs::r50k_base_singleton()] {
                let in_pieces: usize = pieces(&text, most).map(|piece| encoding.encode_ordinary(piece).len()).sum();
                prop_assert_eq!(in_pieces, encoding.encode_ordinary(&text).len());
            }
        }

        #[test]
        fn amp_064_a_text_word_by_word_has_the_tokens_of_the_whole(text in "([a-zA-Z'é世ั.!?)<|>0-9/\u{300}\u{a0}\u{200b}\u{2003}]{0,6}[ \n\t\r]{0,3}){0,60}") {
            for name in ["o200k_base", "cl100k_base", "p50k_base", "r50k_base"] {
                let encoding = Encoding::named(name).unwrap();
                let whole = encoding.0.count(&text);
                prop_assert_eq!(encoding.count(&text), whole, "{}", name);
                // And again, when all is known.
                prop_assert_eq!(encoding.count(&text), whole, "{}", name);
            }
        }

        #[test]
        fn words_are_the_text(text in "(\\PC|[ \n]){0,90}") {
            prop_assert_eq!(words(&text).collect::<String>(), text.as_str());
        }

        #[test]
        fn pieces_are_the_text(text in "(\\PC|[ \n]){0,90}", most in 4usize..40) {
            prop_assert_eq!(pieces(&text, most).collect::<String>(), text.as_str());
            prop_assert!(pieces(&text, most).all(|piece| piece.len() <= most));
        }
    }
}
