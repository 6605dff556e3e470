//! The public byte-pair encodings, counted in pieces.
//!
//! Their words are cut by a pattern that overflows its stack on runs of a million signs, so a long text is cut where a word
//! surely ends. Only a run without any such place is cut in its middle, which may count a token too many.

use super::Count;
use tiktoken_rs::CoreBPE;

/// The longest piece in bytes.
const PIECE: usize = 1 << 15;

pub(super) struct Encoding(pub(super) &'static CoreBPE);

impl Count for Encoding {
    fn count(&self, text: &str) -> usize {
        pieces(text, PIECE)
            .map(|piece| self.0.encode_ordinary(piece).len())
            .sum()
    }
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
    let is_end = |at: &usize| {
        let before = text[..*at].chars().next_back();
        before.is_some_and(|letter| !letter.is_whitespace())
    };
    let mut spaces = text.rmatch_indices(' ').map(|(at, _)| at);
    spaces.find(is_end)
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
        fn pieces_are_the_text(text in "(\\PC|[ \n]){0,90}", most in 4usize..40) {
            prop_assert_eq!(pieces(&text, most).collect::<String>(), text.as_str());
            prop_assert!(pieces(&text, most).all(|piece| piece.len() <= most));
        }
    }
}
