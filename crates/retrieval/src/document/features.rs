//! What a passage looks like, whatever the question: shares and logarithms of counts, so that they need no scale.

use memfleet_language::mentions::Persons;
use memfleet_language::time::count_expressions;
use memfleet_language::{Analyzer, sentences};

/// Features of a passage that are stored with it; appending keeps what is stored readable.
pub const FEATURES: usize = 4;

/// Place of a feature in what [`features`] gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Feature {
    /// Words of the first person among all words.
    FirstPerson,
    /// ln(1 + time expressions).
    TimeExpressions,
    /// Characters in questions among all.
    Question,
    /// ln(1 + capitalised words inside sentences): names, mostly.
    Capitalised,
}

/// The [`FEATURES`] of a passage's own text, without its speaker.
pub fn features(text: &str, analyzer: &Analyzer) -> Vec<f32> {
    let persons = Persons::count(text, analyzer.language());
    let times = count_expressions(text, analyzer.language());
    vec![
        persons.first as f32 / persons.words.max(1) as f32,
        (times as f32).ln_1p(),
        question_share(text),
        (capitalised(text) as f32).ln_1p(),
    ]
}

fn question_share(text: &str) -> f32 {
    let is_question = |sentence: &str| sentence.trim_end().ends_with(['?', '？', '؟', ';']);
    let asked = sentences(text)
        .into_iter()
        .map(|range| &text[range])
        .filter(|sentence| is_question(sentence));
    asked.map(str::len).sum::<usize>() as f32 / text.len().max(1) as f32
}

/// Capitalised words after a lower-case letter or a comma: those that do not merely begin a sentence.
fn capitalised(text: &str) -> usize {
    let inside = |before: &str| before.ends_with(|last: char| last.is_lowercase() || last == ',');
    let name = |word: &str| {
        let mut letters = word.chars();
        letters.next().is_some_and(char::is_uppercase)
            && letters.next().is_some_and(char::is_lowercase)
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    words
        .windows(2)
        .filter(|pair| inside(pair[0]) && name(pair[1]))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use memfleet_language::Language;

    fn of(text: &str, feature: Feature) -> f32 {
        features(text, &Analyzer::new(Language::English))[feature as usize]
    }

    #[test]
    fn statements_and_questions_look_different() {
        let statement = "I went to Porto with Anna yesterday.";
        assert!((of(statement, Feature::FirstPerson) - 1.0 / 7.0).abs() < 1e-6);
        assert!((of(statement, Feature::TimeExpressions) - 2_f32.ln()).abs() < 1e-6);
        assert!((of(statement, Feature::Capitalised) - 3_f32.ln()).abs() < 1e-6);
        assert!(of(statement, Feature::Question).abs() < 1e-6);
        assert!(of("Nice! How was it?", Feature::Question) > 0.5);
    }

    #[test]
    fn empty_text_has_finite_features() {
        assert_eq!(
            features("", &Analyzer::new(Language::English)),
            [0.0; FEATURES]
        );
    }
}
