//! Languages whose words a model's vocabulary has, measured on sentences of everyday chat.

use std::collections::BTreeMap;

use memfleet_encoder::Encoder;
use unicode_segmentation::UnicodeSegmentation;

use crate::error::Error;

/// A sentence a line: language (ISO 639-1), tab, text.
const SENTENCES: &str = include_str!("../data/languages.tsv");

/// Share of unknown words up to which a language is covered.
const MOST_UNKNOWN: f64 = 0.02;
/// Mean number of pieces of a word up to which a language is covered.
const MOST_PIECES: f64 = 2.5;

/// How a vocabulary cuts the words of one language.
#[derive(Debug, Clone, PartialEq)]
pub struct LanguageCoverage {
    /// ISO 639-1 code.
    pub language: String,
    /// Share of words with a piece that the vocabulary lacks, 0 to 1.
    pub unknown: f64,
    /// Mean number of pieces of a word. In scripts without spaces two characters count as a word,
    /// four in those of South East Asia.
    pub pieces: f64,
}

impl LanguageCoverage {
    /// True where at most 2 % of the words are unknown and a word takes at most 2.5 pieces.
    pub fn is_covered(&self) -> bool {
        self.unknown <= MOST_UNKNOWN && self.pieces <= MOST_PIECES
    }
}

/// The coverage of each language that there are sentences of, by code.
pub fn coverage(encoder: &Encoder) -> Result<Vec<LanguageCoverage>, Error> {
    let mut sentences: BTreeMap<&str, Vec<Words>> = BTreeMap::new();
    for (language, text) in SENTENCES.lines().filter_map(|line| line.split_once('\t')) {
        sentences.entry(language).or_default().push(Words::of(text));
    }
    let measured = sentences.into_iter().map(|(language, sentences)| {
        let texts: Vec<&str> = sentences.iter().map(|words| words.text.as_str()).collect();
        let (mut pieces, mut unknown) = (0, 0);
        for tokens in encoder.tokenize(&texts)? {
            pieces += tokens.pieces().len();
            unknown += tokens.pieces().len() - tokens.known().count();
        }
        let words = sentences.iter().map(|words| words.count).sum::<f64>();
        Ok(LanguageCoverage {
            language: language.to_owned(),
            unknown: unknown as f64 / words,
            pieces: pieces as f64 / words,
        })
    });
    measured.collect()
}

/// The words of a sentence without what stands between them.
struct Words {
    text: String,
    count: f64,
}

impl Words {
    fn of(sentence: &str) -> Self {
        let mut words = Self {
            text: String::new(),
            count: 0.0,
        };
        let mut end = 0;
        for (start, word) in sentence.unicode_word_indices() {
            if start > end && !words.text.is_empty() {
                words.text.push(' ');
            }
            words.text.push_str(word);
            words.count += share_of_a_word(word);
            end = start + word.len();
        }
        words
    }
}

/// How much of a word a segment is: segments of scripts without spaces are less than one.
fn share_of_a_word(segment: &str) -> f64 {
    let letters = segment.chars().count() as f64;
    match segment.chars().next().map_or(0, u32::from) {
        0xE00..=0xEFF | 0x1000..=0x109F | 0x1780..=0x17FF => letters / 4.0,
        0x3040..=0x30FF | 0x3400..=0x9FFF | 0xF900..=0xFAFF => letters / 2.0,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_in_scripts_with_and_without_spaces() {
        let words = Words::of("Hello, dear Ana!");
        assert_eq!((words.text.as_str(), words.count), ("Hello dear Ana", 3.0));
        let words = Words::of("我的猫，叫豆豆。");
        assert_eq!((words.text.as_str(), words.count), ("我的猫 叫豆豆", 3.0));
    }

    #[test]
    fn every_line_has_a_language_and_a_text_and_there_are_enough_of_each() {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for line in SENTENCES.lines() {
            let (language, text) = line.split_once('\t').unwrap();
            assert!(language.len() == 2 && text.len() > 10, "{line}");
            *counts.entry(language).or_default() += 1;
        }
        assert!(
            counts.len() > 30 && counts.values().all(|&count| count >= 10),
            "{counts:?}"
        );
    }
}
