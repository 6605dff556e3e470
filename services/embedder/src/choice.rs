//! The choice between two models by the language of texts. A vocabulary has long pieces for the
//! languages that its model was trained on: the model whose vocabulary needs fewer is the one that
//! reads a text.

use std::sync::Arc;

use memfleet_encoder::{Error, ModelTokenizer};
use unicode_normalization::char::is_combining_mark;

/// Characters of a text that are looked at: no more than the pieces that any model reads.
const CHARACTERS: usize = 240;

/// Share of texts that the second model reads from which on it is chosen.
const SHARE: f64 = 0.2;

/// Vocabularies of two models.
pub struct ModelChoice {
    /// Vocabulary of the model that is taken where nothing speaks for the other.
    pub first: Arc<ModelTokenizer>,
    /// Vocabulary of the other.
    pub second: Arc<ModelTokenizer>,
}

impl ModelChoice {
    /// True where the second model reads a fifth of the texts or more.
    pub fn is_second<'t>(&self, texts: impl IntoIterator<Item = &'t str>) -> Result<bool, Error> {
        let (mut all, mut read) = (0_u32, 0_u32);
        for text in texts {
            all += 1;
            read += u32::from(self.reads_second(text)?);
        }
        Ok(read > 0 && f64::from(read) >= SHARE * f64::from(all))
    }

    /// True for a text that the second vocabulary cuts into fewer pieces, by a tenth and by two at
    /// least, or that the first one lacks for the most part. English texts are at 0.2 %, those of
    /// other languages at 80 % or more (docs/benchmarks.md).
    fn reads_second(&self, text: &str) -> Result<bool, Error> {
        let text = letters(text);
        if text.is_empty() {
            return Ok(false);
        }
        let first = self.first.tokenize(&text)?;
        let second = self.second.tokenize(&text)?;
        if first.are_mostly_unknown() {
            return Ok(!second.are_mostly_unknown());
        }
        let (first, second) = (first.pieces().len(), second.pieces().len());
        Ok(first >= second + 2 && 10 * first > 11 * second)
    }
}

/// The beginning of a text without digits, punctuation and pictures, which say nothing of its
/// language.
pub(crate) fn letters(text: &str) -> String {
    let is_letter = |c: char| c.is_alphabetic() || is_combining_mark(c);
    let beginning = text.chars().take(CHARACTERS);
    let letters: String = beginning
        .map(|c| if is_letter(c) { c } else { ' ' })
        .collect();
    letters.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_words_without_what_stands_between_them() {
        assert_eq!(letters("  Hi, 2 friends! 🎉"), "Hi    friends");
        assert_eq!(letters("हिन्दी."), "हिन्दी");
        assert_eq!(letters("12:30 🎉"), "");
        assert_eq!(letters(&"語".repeat(1_000)).chars().count(), CHARACTERS);
    }
}
