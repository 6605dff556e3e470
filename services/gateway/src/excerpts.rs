//! Which sentences of a long turn answer the query: by their words, and by the passage that the search found best.

use memfleet_assembly::SentenceScorer;
use memfleet_language::{Analyzer, Language, sentences};
use memfleet_ports::retriever::Hit;

/// What a sentence gains inside the turn's best passage, as a share of the turn's best sentence.
const BEST_PASSAGE: f32 = 0.5;

/// A score for every sentence of every text, in order.
pub fn sentence_scores(query: &str, hits: &[Hit], texts: &[String]) -> Vec<Vec<f32>> {
    let analyzer = Analyzer::new(Language::detect(query));
    let scorer = SentenceScorer::new(&analyzer, query, texts.iter().map(String::as_str));
    hits.iter()
        .zip(texts)
        .map(|(hit, text)| with_passage(scorer.score(text), text, hit.passage))
        .collect()
}

fn with_passage(mut scores: Vec<f32>, text: &str, passage: (u32, u32)) -> Vec<f32> {
    let best = scores.iter().copied().fold(0.0, f32::max);
    let bonus = BEST_PASSAGE * if best > 0.0 { best } else { 1.0 };
    let inside = passage.0 as usize..passage.1 as usize;
    for (score, sentence) in scores.iter_mut().zip(sentences(text)) {
        if inside.contains(&sentence.start) {
            *score += bonus;
        }
    }
    scores
}
