//! Coverage of a turn by one of its facts: a mark on a turn is read as a mark on all of its words.

use std::collections::HashSet;

use memfleet_domain::fact::Draft;
use memfleet_language::Analyzer;

/// True where the fact says all that the text of its turn says: each content word of the text is
/// one of the fact's sentence.
pub fn covers(fact: &Draft, text: &str, analyzer: &Analyzer) -> bool {
    let told: HashSet<String> = analyzer.terms(&fact.text).into_iter().collect();
    let mut terms = analyzer.query_terms(text).into_iter();
    terms.all(|term| told.contains(&term) || analyzer.is_stop_word(&term))
}

#[cfg(test)]
mod tests {
    use memfleet_domain::turn::AcceptedTurn;
    use memfleet_language::Language;
    use memfleet_ports::conformance::knowledge::statement;
    use memfleet_ports::conformance::samples::{instant, turn};

    use super::*;

    /// True where the first words of a turn cover it.
    fn is_covered(words: &str, text: &str) -> bool {
        let turn: AcceptedTurn = turn("1", text);
        let statement = statement(&turn, words, instant(1));
        covers(
            statement.fact().unwrap(),
            text,
            &Analyzer::new(Language::English),
        )
    }

    #[test]
    fn a_turn_of_one_statement_is_covered_by_it() {
        for (words, text) in [
            ("I live in Lisbon", "I live in Lisbon."),
            ("I'm living in Lisbon now", "I'm living in Lisbon now!"),
            ("I work for Acme", "So I work for Acme."),
        ] {
            assert!(is_covered(words, text), "{text}");
        }
    }

    #[test]
    fn a_turn_that_says_more_than_a_fact_is_not_covered_by_it() {
        for text in [
            "I live in Lisbon and adopted a cat.",
            "I live in Lisbon. My cat is called Pixel.",
            "I live in Lisbon with my two cats.",
            "I live in Lisbon and my sister lives in Porto.",
            "I live in Lisbon. [shares a photo of a bridge]",
        ] {
            assert!(!is_covered("I live in Lisbon", text), "{text}");
        }
    }
}
