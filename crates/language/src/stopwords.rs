//! Stop words: function words of a language, dropped from lexical queries only. The lists are our own.

use crate::language::Language;

/// The stop words of a language, lower case, in no order; empty where there is no list.
pub(crate) fn of(language: Language) -> impl Iterator<Item = &'static str> {
    let list = match language {
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
    };
    list.split_whitespace()
}
