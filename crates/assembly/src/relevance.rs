//! Relevance of sentences to a query: what an excerpt is chosen by when no model has scored sentences.

use memfleet_language::Analyzer;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

/// What a sentence takes from each neighbour: the answer often stands beside the words of the question.
const NEIGHBOUR: f32 = 0.3;

/// Scores sentences by the query's terms in them, each weighted by its rarity among the candidates.
pub struct SentenceScorer<'a> {
    analyzer: &'a Analyzer,
    /// The distinct terms of the query, numbered in its order.
    terms: HashMap<String, usize>,
    weights: Vec<f32>,
    /// Which of the terms a chunk between white space has: conversations repeat their words, and stemming is slow.
    known: RefCell<HashMap<Box<str>, Box<[usize]>>>,
}

impl<'a> SentenceScorer<'a> {
    /// A scorer for a query; `texts` are the candidates' texts, from which the weights ln(1 + (N − df + 0.5) / (df + 0.5))
    /// are taken, N and df counted over texts.
    pub fn new<'t>(
        analyzer: &'a Analyzer,
        query: &str,
        texts: impl IntoIterator<Item = &'t str>,
    ) -> Self {
        let mut terms = HashMap::new();
        for term in analyzer.query_terms(query) {
            let next = terms.len();
            terms.entry(term).or_insert(next);
        }
        let mut frequencies = vec![0.0_f32; terms.len()];
        let mut scorer = Self {
            analyzer,
            terms,
            weights: Vec::new(),
            known: RefCell::default(),
        };
        let mut count = 0.0_f32;
        for text in texts {
            count += 1.0;
            for term in scorer.present(text) {
                frequencies[term] += 1.0;
            }
        }
        let weight = |frequency: f32| (1.0 + (count - frequency + 0.5) / (frequency + 0.5)).ln();
        scorer.weights = frequencies.into_iter().map(weight).collect();
        scorer
    }

    /// A score for each of a text's sentences, in order: its own terms and a share of its neighbours'.
    pub fn score(&self, text: &str, sentences: &[Range<usize>]) -> Vec<f32> {
        let own = |sentence: &Range<usize>| {
            self.present(&text[sentence.clone()])
                .into_iter()
                .fold(0.0, |sum, term| sum + self.weights[term])
        };
        let own: Vec<f32> = sentences.iter().map(own).collect();
        let at = |index: Option<usize>| {
            index
                .and_then(|index| own.get(index))
                .copied()
                .unwrap_or(0.0)
        };
        (0..own.len())
            .map(|index| own[index] + NEIGHBOUR * (at(index.checked_sub(1)) + at(Some(index + 1))))
            .collect()
    }

    /// The query's terms that a text has, ascending.
    fn present(&self, text: &str) -> Vec<usize> {
        let mut known = self.known.borrow_mut();
        let mut found = Vec::new();
        for chunk in text.split_whitespace() {
            if let Some(terms) = known.get(chunk) {
                found.extend_from_slice(terms);
                continue;
            }
            let mut terms = Vec::new();
            self.analyzer
                .visit(chunk, |term| terms.extend(self.terms.get(term)));
            found.extend_from_slice(&terms);
            known.insert(chunk.into(), terms.into());
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memfleet_language::{Language, sentences};

    #[test]
    fn the_sentence_with_the_rare_term_scores_best_and_its_neighbours_next() {
        let analyzer = Analyzer::new(Language::English);
        let texts = [
            "We have a dog. It rains.",
            "A dog is loud. The violin is mine. It was cheap. Bye.",
        ];
        let query = SentenceScorer::new(&analyzer, "Whose violin and dog?", texts);
        let scores = query.score(texts[1], &sentences(texts[1]));
        assert_eq!(scores.len(), 4);
        assert!(scores[1] > scores[0] && scores[0] > scores[2] && scores[2] > scores[3]);
    }
}
