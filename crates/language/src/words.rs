//! The plain words of a text, for word lists; search terms come from the analyzer.

use crate::fold::fold;
use std::ops::Range;
use unicode_normalization::char::is_combining_mark;

/// A word of a text.
pub(crate) struct Word {
    pub(crate) folded: String,
    /// Bytes of the text.
    pub(crate) span: Range<usize>,
}

/// The words of a text, folded; an apostrophe ends a word, so possessives and elisions fall away.
pub(crate) fn of(text: &str) -> Vec<Word> {
    let in_word = |letter: char| letter.is_alphanumeric() || is_combining_mark(letter);
    let mut out = Vec::new();
    let mut start = None;
    for (at, letter) in text.char_indices().chain([(text.len(), ' ')]) {
        match (start, in_word(letter)) {
            (None, true) => start = Some(at),
            (Some(first), false) => {
                out.push(Word {
                    folded: fold(&text[first..at]),
                    span: first..at,
                });
                start = None;
            }
            _ => {}
        }
    }
    out
}
