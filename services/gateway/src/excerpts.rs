//! Which sentences of a long turn answer the query: by their words, and by the passage that the search found best.

use std::ops::Range;

use memfleet_assembly::SentenceScorer;
use memfleet_language::{Analyzer, sentences};

/// What a sentence gains inside the turn's best passage, as a share of the turn's best sentence.
const BEST_PASSAGE: f32 = 0.5;
/// Bytes up to which a turn is shown whole or not at all: about the tokens that an excerpt must have to be worth its place.
const SHORT: usize = 120;

/// A score for every sentence of every text, in order; none where a text is too short to be cut. `passage` is the byte range that matched
/// best in the text at a place; empty where none is known.
pub fn sentence_scores(
    analyzer: &Analyzer,
    query: &str,
    texts: &[impl AsRef<str>],
    passage: impl Fn(usize) -> (u32, u32),
) -> Vec<Option<Vec<f32>>> {
    let texts = texts.iter().map(AsRef::as_ref);
    let scorer = SentenceScorer::new(analyzer, query, texts.clone());
    let score = |(at, text): (usize, &str)| {
        (text.len() > SHORT).then(|| {
            let sentences = sentences(text);
            with_passage(scorer.score(text, &sentences), &sentences, passage(at))
        })
    };
    texts.enumerate().map(score).collect()
}

fn with_passage(mut scores: Vec<f32>, sentences: &[Range<usize>], passage: (u32, u32)) -> Vec<f32> {
    let best = scores.iter().copied().fold(0.0, f32::max);
    let bonus = BEST_PASSAGE * if best > 0.0 { best } else { 1.0 };
    let inside = passage.0 as usize..passage.1 as usize;
    for (score, sentence) in scores.iter_mut().zip(sentences) {
        if inside.contains(&sentence.start) {
            *score += bonus;
        }
    }
    scores
}
