//! Truncation: the beginning of a text that is too long, cut where it hurts least (AMP items 71 to 73).

use memfleet_language::sentences;
use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

/// A cut at a sentence's end may lose this share of what would fit …
const SENTENCE_LOSS: usize = 2;
/// … and one at a word's end this one.
const WORD_LOSS: usize = 4;
/// Bytes to which the search for the longest beginning is exact.
const PRECISION: usize = 16;

/// Where to cut a text so that its beginning fits: at the end of a sentence or line if that keeps half of what would fit, else
/// after a word if that keeps three quarters, else between graphemes. `None` if nothing fits. `room` is a guess of what fits, in bytes.
pub(crate) fn cut(text: &str, room: usize, fits: impl Fn(usize) -> bool) -> Option<usize> {
    let most = longest(text, room, &fits)?;
    let kept = &text[..most];
    let sentence = sentence_end(text, most).filter(|end| *end * SENTENCE_LOSS >= most);
    let word = kept
        .unicode_word_indices()
        .next_back()
        .map(|(start, _)| text[..start].trim_end().len())
        .filter(|end| *end * WORD_LOSS >= most * (WORD_LOSS - 1));
    // Shorter texts can have more tokens, if rarely: each is tried.
    [sentence, word, Some(most)]
        .into_iter()
        .flatten()
        .find(|&end| end > 0 && fits(end))
}

/// The end of the last sentence that ends within the first `most` bytes.
fn sentence_end(text: &str, most: usize) -> Option<usize> {
    // One sentence more than is kept tells whether the last one is whole.
    let ahead = text.floor_char_boundary(most.saturating_add(most.max(64)));
    let ends = sentences(&text[..ahead]).into_iter().map(|range| range.end);
    ends.take_while(|end| *end <= most).last()
}

/// About the longest beginning that fits, ending between graphemes.
fn longest(text: &str, room: usize, fits: &impl Fn(usize) -> bool) -> Option<usize> {
    let mut too_long = room.clamp(1, text.len().max(1));
    let mut fitting = 0;
    // A multiple of the guess at the most is ever looked at, however long the text is.
    while too_long < text.len() && fits(grapheme_floor(text, too_long)) {
        fitting = too_long;
        too_long = too_long.saturating_mul(2).min(text.len());
    }
    while too_long - fitting > PRECISION.max(fitting / 64) {
        let middle = fitting + (too_long - fitting) / 2;
        if fits(grapheme_floor(text, middle)) {
            fitting = middle;
        } else {
            too_long = middle;
        }
    }
    let end = grapheme_floor(text, fitting);
    (end > 0).then_some(end)
}

/// The last grapheme bound that is not after a byte.
fn grapheme_floor(text: &str, at: usize) -> usize {
    let at = text.floor_char_boundary(at);
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    // The whole text is given, so the cursor never asks for more.
    if cursor.is_boundary(text, 0).unwrap_or(false) {
        return at;
    }
    cursor.prev_boundary(text, 0).ok().flatten().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn within(text: &str, bytes: usize) -> Option<&str> {
        cut(text, bytes, |end| end <= bytes).map(|end| &text[..end])
    }

    #[test]
    fn amp_073_cuts_fall_at_sentence_ends_then_words_then_graphemes() {
        let text =
            "The first sentence is here. The second one is rather longer than that, and goes on.";
        assert_eq!(within(text, 50), Some("The first sentence is here. "));
        assert_eq!(
            within("one two three four fivefivefivefive", 22),
            Some("one two three four")
        );
        assert_eq!(within(&"x".repeat(300), 100).map(str::len), Some(100));
        assert_eq!(
            within("line one\nline two is a long line without an end", 14),
            Some("line one\n")
        );
        assert_eq!(within("", 10), None);
        assert_eq!(within("word", 0), None);
    }

    #[test]
    fn amp_073_no_grapheme_is_split() {
        let family = "👩\u{200D}👩\u{200D}👧".repeat(20);
        let kept = within(&family, 100).unwrap();
        assert_eq!(kept.len() % "👩\u{200D}👩\u{200D}👧".len(), 0);
        let accents = "e\u{301}".repeat(50);
        assert_eq!(within(&accents, 40).unwrap().len() % 3, 0);
    }

    proptest! {
        #[test]
        fn amp_073_any_text_is_cut_between_graphemes_within_the_room(
            text in "(\\PC|[a-z]{1,9} |[\u{300}\u{200D}]|[🇩🇪👩]|क्षि|[。！？\n]){0,80}", bytes in 0usize..300
        ) {
            let Some(kept) = within(&text, bytes) else { return Ok(()) };
            prop_assert!(kept.len() <= bytes && !kept.is_empty());
            let bounds: Vec<usize> = text.grapheme_indices(true).map(|(at, _)| at).chain([text.len()]).collect();
            prop_assert!(bounds.contains(&kept.len()));
        }
    }
}
