//! Overlap: windows of one document repeat each other's ends; what one shows already is trimmed from the other (AMP item 84).

use std::ops::Range;

/// A shorter overlap is no window's: conversations repeat their phrases.
const MINIMUM_BYTES: usize = 48;
/// Longer overlaps than windows are made with are not looked for.
const MAXIMUM_BYTES: usize = 8192;

/// The bytes of `text` that `shown` does not repeat at its ends; all of it where they do not overlap, nothing where `shown` has all of it.
pub(crate) fn rest(text: &str, shown: &str) -> Range<usize> {
    if text.len() < MINIMUM_BYTES || shown.len() < MINIMUM_BYTES {
        return 0..text.len();
    }
    // An overlap begins with the first bytes of one of the two: looking for these is faster than for all of it.
    let (mut head, mut tail) = (0, 0);
    if shown.contains(beginning(text)) {
        if shown.contains(text) {
            return 0..0;
        }
        head = common(shown, text);
    }
    if text.contains(beginning(shown)) {
        tail = common(text, shown);
    }
    let long = |bytes: usize| if bytes >= MINIMUM_BYTES { bytes } else { 0 };
    let (start, end) = (long(head), text.len() - long(tail));
    if start < end { start..end } else { 0..0 }
}

fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(MINIMUM_BYTES)]
}

/// The longest end of `before` that `after` begins with, in bytes.
fn common(before: &str, after: &str) -> usize {
    let before = &before.as_bytes()[before.len().saturating_sub(MAXIMUM_BYTES)..];
    let after = &after.as_bytes()[..after.len().min(MAXIMUM_BYTES)];
    let shorter = borders(after);
    let mut matched = 0;
    for byte in before {
        if matched == after.len() {
            matched = shorter[matched - 1];
        }
        while matched > 0 && after[matched] != *byte {
            matched = shorter[matched - 1];
        }
        if after.get(matched) == Some(byte) {
            matched += 1;
        }
    }
    matched
}

/// For each beginning of a text, the longest shorter one that it ends with.
fn borders(text: &[u8]) -> Vec<usize> {
    let mut borders = vec![0; text.len()];
    let mut matched = 0;
    for at in 1..text.len() {
        while matched > 0 && text[at] != text[matched] {
            matched = borders[matched - 1];
        }
        if text[at] == text[matched] {
            matched += 1;
        }
        borders[at] = matched;
    }
    borders
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DOCUMENT: &str = "The first paragraph tells of the harbour and of its ships, of which there are many. The second one \
                            tells of the town, its market and its people. The third, at last, is about the hills behind it.";

    #[test]
    fn amp_084_what_a_window_repeats_is_trimmed_at_either_end() {
        let (first, second) = (&DOCUMENT[..150], &DOCUMENT[80..]);
        assert_eq!(rest(second, first), 70..second.len());
        assert_eq!(rest(first, second), 0..80);
        assert_eq!(rest(&DOCUMENT[20..100], DOCUMENT), 0..0);
    }

    #[test]
    fn amp_084_short_phrases_that_repeat_are_not_trimmed() {
        let text = "See you tomorrow at noon";
        assert_eq!(rest(text, "Fine. See you tomorrow at noon"), 0..text.len());
        assert_eq!(rest("", DOCUMENT), 0..0);
    }

    proptest! {
        #[test]
        fn amp_084_nothing_is_lost_and_nothing_split(left in "(\\PC|ab){0,90}", middle in "(\\PC|ab){0,90}", right in "(\\PC|ab){0,90}") {
            let (shown, text) = (format!("{left}{middle}"), format!("{middle}{right}"));
            let rest = rest(&text, &shown);
            prop_assert!(text.is_char_boundary(rest.start) && text.is_char_boundary(rest.end));
            let (head, tail) = (&text[..rest.start], &text[rest.end..]);
            let whole = rest.is_empty() && shown.contains(&text);
            prop_assert!(whole || (shown.ends_with(head) && shown.starts_with(tail)));
        }
    }
}
