//! Stop words: function words of a language, dropped from lexical queries only. The lists are our own.

use crate::fold::fold;
use crate::language::Language;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// The stop words of a language, folded; empty where there is no list.
pub(crate) fn of(language: Language) -> &'static HashSet<String> {
    static FOLDED: LazyLock<HashMap<Language, HashSet<String>>> = LazyLock::new(|| {
        let words = |language| list(language).split_whitespace().map(fold).collect();
        let all = Language::ALL.into_iter();
        all.map(|language| (language, words(language))).collect()
    });
    &FOLDED[&language]
}

fn list(language: Language) -> &'static str {
    match language {
        Language::Danish => include_str!("../data/stopwords/da.txt"),
        Language::Dutch => include_str!("../data/stopwords/nl.txt"),
        Language::English => include_str!("../data/stopwords/en.txt"),
        Language::French => include_str!("../data/stopwords/fr.txt"),
        Language::German => include_str!("../data/stopwords/de.txt"),
        Language::Italian => include_str!("../data/stopwords/it.txt"),
        Language::Norwegian => include_str!("../data/stopwords/no.txt"),
        Language::Portuguese => include_str!("../data/stopwords/pt.txt"),
        Language::Russian => include_str!("../data/stopwords/ru.txt"),
        Language::Spanish => include_str!("../data/stopwords/es.txt"),
        Language::Swedish => include_str!("../data/stopwords/sv.txt"),
        Language::Turkish => include_str!("../data/stopwords/tr.txt"),
        _ => "",
    }
}
