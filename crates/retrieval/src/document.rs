//! From a turn to its indexed passages: cut, terms, features. One function for the index, so that every writer agrees.

mod features;

use memfleet_language::{Analyzer, PASSAGE_CHARS, passages};
use memfleet_ports::ledger::{Passage, TermCount};

pub(crate) use features::Feature;
pub use features::{FEATURES, features};

/// A passage of a turn and the text to embed for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// What is stored; without vectors yet.
    pub passage: Passage,
    /// `Speaker: passage`: what the embedder is given.
    pub text: String,
}

/// The passages of a turn, at least one. `text` is the turn's searchable text; a passage is at most 700 characters of it,
/// cut at sentence ends, and the passages cover it without gaps.
pub fn documents(speaker: &str, text: &str, analyzer: &Analyzer) -> Vec<Document> {
    let mut ranges = passages(text, PASSAGE_CHARS);
    if ranges.is_empty() {
        ranges.push(0..0);
    }
    let document = |range: std::ops::Range<usize>| {
        let words = &text[range.clone()];
        let labelled = labelled(speaker, words);
        let passage = Passage {
            start: range.start as u32,
            end: range.end as u32,
            terms: counted(&labelled, analyzer),
            features: features(words, analyzer),
            vectors: None,
            embedding_space: None,
        };
        Document {
            passage,
            text: labelled,
        }
    };
    ranges.into_iter().map(document).collect()
}

/// A derived text (a fact, the head of an episode) as one passage, without vectors yet: it names its people itself, so it is
/// analyzed and embedded as it stands.
pub fn derived(text: &str, analyzer: &Analyzer) -> Passage {
    Passage {
        start: 0,
        end: text.len() as u32,
        terms: counted(text, analyzer),
        features: features(text, analyzer),
        vectors: None,
        embedding_space: None,
    }
}

/// The text of a passage as it is analyzed and embedded: who speaks belongs to the meaning.
pub fn labelled(speaker: &str, passage: &str) -> String {
    format!("{speaker}: {}", passage.trim())
}

/// The terms of a text with their counts, sorted by term.
fn counted(text: &str, analyzer: &Analyzer) -> Vec<TermCount> {
    let mut terms = analyzer.terms(text);
    terms.sort_unstable();
    let mut counts: Vec<TermCount> = Vec::with_capacity(terms.len());
    for term in terms {
        match counts.last_mut() {
            Some((last, count)) if *last == term => *count = count.saturating_add(1),
            _ => counts.push((term, 1)),
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use memfleet_language::Language;

    #[test]
    fn a_turn_without_words_is_one_passage_that_its_speaker_finds() {
        let documents = documents("Ada", "", &Analyzer::new(Language::English));
        assert_eq!(documents.len(), 1);
        assert_eq!(documents[0].passage.terms, [("ada".to_owned(), 1)]);
    }

    #[test]
    fn long_turns_are_cut_and_every_passage_names_the_speaker() {
        let text = "We climbed the hill again. ".repeat(60);
        let documents = documents("Ada", &text, &Analyzer::new(Language::English));
        assert!(documents.len() > 2);
        assert!(
            documents
                .iter()
                .all(|document| document.text.starts_with("Ada: We climbed"))
        );
        assert_eq!(
            documents
                .last()
                .map(|document| document.passage.end as usize),
            Some(text.len())
        );
        let climbs = documents[0]
            .passage
            .terms
            .iter()
            .find(|(term, _)| term == "climb");
        assert!(climbs.is_some_and(|&(_, count)| count > 10));
    }
}
