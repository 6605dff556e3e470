//! Sentence ends in any script, and passages: long texts cut at sentence ends.

use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

/// The length in characters beyond which a turn is cut into passages (`design/retrieval.md`, the reference recipe).
pub const PASSAGE_CHARS: usize = 700;

/// Words after whose full stop a sentence goes on, besides single letters.
const ABBREVIATIONS: &[&str] = &[
    "mr", "mrs", "ms", "dr", "prof", "sr", "jr", "st", "vs", "etc", "eg", "ie", "e.g", "i.e", "no",
    "fig", "inc", "ltd", "dept", "approx", "est", "a.m", "p.m", "u.s", "u.k", "cf", "al", "vol",
    "pp", "gen", "col", "capt", "rev", "hon", "bzw", "z.b", "d.h", "ca", "nr", "hr", "fr", "usw",
    "mme", "mlle", "sra", "dra", "av", "pág", "bijv", "dhr", "mevr", "sig", "dott",
];

/// The sentences of a text as byte ranges, in order and without gaps: trailing space belongs to the sentence before it. A line
/// end ends a sentence. Empty for empty text.
pub fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for (start, sentence) in text.split_sentence_bound_indices() {
        let end = start + sentence.len();
        match out.last_mut() {
            Some(last) if sentence.trim().is_empty() || goes_on(&text[last.clone()]) => {
                last.end = end;
            }
            _ => out.push(start..end),
        }
    }
    out
}

/// Whether a sentence bound after `sentence` is only the full stop of an abbreviation, or `sentence` is blank.
fn goes_on(sentence: &str) -> bool {
    if sentence.ends_with(['\n', '\r', '\u{2028}', '\u{2029}', '\u{85}']) {
        return false;
    }
    let Some(before) = sentence.trim_end().strip_suffix('.') else {
        return sentence.trim().is_empty();
    };
    let word = before
        .rsplit(|letter: char| letter.is_whitespace() || matches!(letter, '(' | '[' | '"'))
        .next()
        .unwrap_or_default();
    let initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase) && word != "I";
    initial || ABBREVIATIONS.contains(&word.to_lowercase().as_str())
}

/// Cuts a text into passages of at most `limit` characters, in order and without gaps. Cuts fall at sentence ends; a longer
/// sentence is cut at word bounds, a longer word at grapheme bounds, a longer grapheme anywhere between characters. A text
/// within the limit is one passage; empty text has none. `limit` 0 counts as 1.
pub fn passages(text: &str, limit: usize) -> Vec<Range<usize>> {
    let limit = limit.max(1);
    if text.is_empty() {
        return Vec::new();
    }
    // A character is at least one byte, so this also proves the character count without counting.
    if text.len() <= limit || text.chars().count() <= limit {
        return std::iter::once(0..text.len()).collect();
    }
    let mut packer = Packer {
        out: Vec::new(),
        limit,
        used: 0,
    };
    for sentence in sentences(text) {
        packer.add(text, sentence, Level::Word);
    }
    packer.out
}

/// What a piece that is too long is cut into.
#[derive(Clone, Copy)]
enum Level {
    Word,
    Grapheme,
    Character,
}

/// Fills passages with pieces in order.
struct Packer {
    out: Vec<Range<usize>>,
    limit: usize,
    used: usize,
}

impl Packer {
    fn add(&mut self, text: &str, piece: Range<usize>, cut_at: Level) {
        let length = text[piece.clone()].chars().count();
        if length > self.limit {
            self.split(text, &piece, cut_at);
            return;
        }
        match self.out.last_mut() {
            Some(last) if self.used + length <= self.limit => {
                last.end = piece.end;
                self.used += length;
            }
            _ => {
                self.out.push(piece);
                self.used = length;
            }
        }
    }

    fn split(&mut self, text: &str, piece: &Range<usize>, cut_at: Level) {
        let part = &text[piece.clone()];
        let at = |start: usize, length: usize| piece.start + start..piece.start + start + length;
        match cut_at {
            Level::Word => {
                for (start, word) in part.split_word_bound_indices() {
                    self.add(text, at(start, word.len()), Level::Grapheme);
                }
            }
            Level::Grapheme => {
                for (start, grapheme) in part.grapheme_indices(true) {
                    self.add(text, at(start, grapheme.len()), Level::Character);
                }
            }
            Level::Character => {
                for (start, letter) in part.char_indices() {
                    self.add(text, at(start, letter.len_utf8()), Level::Character);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(text: &str) -> Vec<&str> {
        sentences(text)
            .into_iter()
            .map(|range| text[range].trim())
            .collect()
    }

    #[test]
    fn sentences_end_where_readers_end_them() {
        assert_eq!(
            texts("Dr. Smith paid 3.50 to J. Doe. He left! Why? 好的。走吧！"),
            [
                "Dr. Smith paid 3.50 to J. Doe.",
                "He left!",
                "Why?",
                "好的。",
                "走吧！"
            ]
        );
        assert_eq!(texts("one\ntwo\n\nthree"), ["one", "two", "three"]);
        assert_eq!(texts("यह पहला है। यह दूसरा है।"), ["यह पहला है।", "यह दूसरा है।"]);
        assert!(sentences("").is_empty());
    }

    #[test]
    fn passages_prefer_sentence_ends() {
        let text = "First one here. Second one here. Third.";
        let cut: Vec<&str> = passages(text, 33)
            .into_iter()
            .map(|range| &text[range])
            .collect();
        assert_eq!(cut, ["First one here. Second one here. ", "Third."]);
    }

    proptest! {
        #[test]
        fn sentences_cover_any_text(text in any::<String>()) {
            let joined: String = sentences(&text).into_iter().map(|range| &text[range]).collect();
            prop_assert_eq!(joined, text);
        }

        #[test]
        fn passages_cover_any_text_within_the_limit(text in "(\\PC|[a-z. \n]){0,300}", limit in 0usize..80) {
            let cut = passages(&text, limit);
            let joined: String = cut.iter().map(|range| &text[range.clone()]).collect();
            prop_assert_eq!(&joined, &text);
            for range in cut {
                prop_assert!(text[range].chars().count() <= limit.max(1));
            }
        }
    }
}
