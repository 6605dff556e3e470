//! What the analyzer promises, by example and by property.

use super::*;
use proptest::prelude::*;

fn english(text: &str) -> Vec<String> {
    Analyzer::new(Language::English).terms(text)
}

fn has_all(language: Language, text: &str, expected: &[&str]) {
    let terms = Analyzer::new(language).terms(text);
    for term in expected {
        assert!(
            terms.iter().any(|found| found == term),
            "{term} not in {terms:?}"
        );
    }
}

#[test]
fn plain_english_prose_is_lower_cased_words_stemmed() {
    assert_eq!(
        english("Caroline's running to the charities, and I don't well-known."),
        [
            "carolin", "run", "to", "the", "chariti", "and", "i", "dont", "well", "known"
        ]
    );
    assert_eq!(
        english("we\u{2019}ll see… maybe--not"),
        ["we", "see", "mayb", "not"]
    );
}

#[test]
fn queries_lose_stop_words_unless_nothing_else_is_left() {
    let analyzer = Analyzer::new(Language::English);
    assert_eq!(
        analyzer.query_terms("When did Melanie go to the museum?"),
        ["melani", "go", "museum"]
    );
    assert_eq!(
        analyzer.query_terms("What does she have?"),
        ["what", "doe", "she", "have"]
    );
    assert_eq!(
        Analyzer::new(Language::German).query_terms("Wo wohnt die Schwester?"),
        ["wohnt", "schwest"]
    );
    assert!(analyzer.query_terms("?!").is_empty());
}

#[test]
fn identifiers_are_found_whole_and_in_parts() {
    has_all(
        Language::English,
        "parseHTTPHeader2",
        &["parsehttpheader2", "pars", "http", "header", "2"],
    );
    has_all(
        Language::English,
        "max_token_count",
        &["max_token_count", "max", "token", "count"],
    );
    has_all(
        Language::English,
        "crates/language/src/lib.rs",
        &["crates/language/src/lib.rs", "lib.rs", "crate", "lib"],
    );
    has_all(
        Language::English,
        "state-of-the-art v1.2.3-beta",
        &["state-of-the-art", "state", "v1.2.3-beta", "v1"],
    );
    has_all(
        Language::English,
        "__init__ OpenAI URLs",
        &["init", "openai", "open", "ai", "url"],
    );
}

#[test]
fn addresses_numbers_and_times_are_found_whole_and_in_parts() {
    has_all(
        Language::English,
        "(jane.doe@example.org)",
        &["jane.doe@example.org", "jane.doe", "example.org", "jane"],
    );
    has_all(
        Language::English,
        "https://example.org/a?b=1",
        &["https://example.org/a?b=1", "example.org", "a"],
    );
    has_all(
        Language::English,
        "$1,000.50 or 1.000,50",
        &["1000.50", "1000"],
    );
    has_all(
        Language::English,
        "1,000,000 3,5 192.168.0.1",
        &["1000000", "3.5", "192.168.0.1", "168"],
    );
    has_all(
        Language::English,
        "2023-05-08T13:56",
        &["2023-05-08", "2023", "5", "8", "13:56", "56"],
    );
    has_all(
        Language::English,
        "08/05/2023 May 8th 10km",
        &["08/05/2023", "5", "8", "8th", "10km", "10", "km"],
    );
}

#[test]
fn accents_case_and_width_do_not_matter() {
    let spanish = Analyzer::new(Language::Spanish);
    for (written, typed) in [("invitación", "invitacion"), ("ＣＡＮＣＩÓＮ", "cancion")] {
        let index = spanish.terms(written);
        assert!(
            spanish
                .query_terms(typed)
                .iter()
                .all(|term| index.contains(term)),
            "{index:?}"
        );
    }
    has_all(Language::German, "Straße Häuser", &["strass", "haus"]);
    has_all(Language::Russian, "Ёлки ещё", &["елк"]);
}

#[test]
fn scripts_without_spaces_become_pairs() {
    assert_eq!(english("東京都"), ["東京", "京都"]);
    assert_eq!(
        english("黒い猫が寝る"),
        ["黒", "い", "猫", "が", "寝", "る"]
    );
    assert_eq!(english("使用Python编程"), ["使用", "python", "编程"]);
    assert_eq!(english("हिन्दी 고양이"), ["हिन्दी", "고양이", "고양", "양이"]);
}

#[test]
fn french_elision_leaves_the_noun() {
    assert_eq!(
        Analyzer::new(Language::French).query_terms("Où est l’hôtel d'Anne ?"),
        ["hotel", "anne"]
    );
    has_all(Language::English, "O'Brien", &["obrien", "brien"]);
}

#[test]
fn very_long_words_are_cut_alike_everywhere() {
    let blob = "é".repeat(5000);
    assert!(english(&blob).iter().all(|term| term.len() <= TERM_BYTES));
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "([a-zA-Z0-9'’._/:@,-]{1,12} ){0,12}",
        "[\\p{Latin}\\p{Greek}\\p{Cyrillic}\\p{Arabic}\\p{Tamil}\\p{Han}\\p{Hangul}\\p{Thai}\\p{M}\\p{N}' .-]{0,60}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_query_term_is_an_index_term_in_every_language(text in any_text(), pick in 0usize..Language::ALL.len()) {
        let analyzer = Analyzer::new(Language::ALL[pick]);
        let index = analyzer.terms(&text);
        for term in analyzer.query_terms(&text) {
            prop_assert!(index.contains(&term));
        }
        for term in index {
            prop_assert!(!term.is_empty() && term.len() <= TERM_BYTES);
        }
    }
}
