//! What a turn becomes in the index, in the language of its space.

use memfleet_domain::turn::AcceptedTurn;
use memfleet_language::{Analyzer, Language};
use memfleet_retrieval::document::{Document, documents};

/// The passages of a turn with the text to embed for each. The language is the space's, or the turn's own where none is set.
pub fn prepare(turn: &AcceptedTurn, language: Option<&str>) -> Vec<Document> {
    let text = turn.content.searchable_text();
    let language = language
        .and_then(Language::from_tag)
        .unwrap_or_else(|| Language::detect(&text));
    documents(turn.speaker.as_str(), &text, &Analyzer::new(language))
}
