//! What a query may name an entity by: runs of its words, written as the keys of entities are, and the speakers that it mentions.

use std::collections::BTreeSet;

use memfleet_language::{Analyzer, fold};

/// Words of a name, at most.
const LONGEST: usize = 5;

/// Keys that entities may have, each once. Words that say nothing by themselves name nothing.
pub(super) fn named(text: &str, mentioned: &[String], analyzer: &Analyzer) -> Vec<String> {
    let folded = fold(text).replace('’', "'");
    let is_edge = |letter: char| !letter.is_alphanumeric();
    let words = folded.split_whitespace().map(|it| it.trim_matches(is_edge));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let telling: BTreeSet<String> = analyzer.query_terms(text).into_iter().collect();
    let tells = |word: &&str| analyzer.terms(word).iter().any(|it| telling.contains(it));
    let runs = (1..=LONGEST).flat_map(|length| words.windows(length));
    let mut keys: BTreeSet<String> = mentioned.iter().map(|name| fold(name)).collect();
    for run in runs.filter(|run| run.iter().any(tells)) {
        let key = run.join(" ");
        keys.extend(key.strip_suffix("'s").map(str::to_owned));
        keys.insert(key);
    }
    keys.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use memfleet_language::Language;

    use super::*;

    fn keys(text: &str) -> Vec<String> {
        named(text, &[], &Analyzer::new(Language::English))
    }

    #[test]
    fn runs_of_words_are_names_with_and_without_their_owner() {
        let keys = keys("Where does Ada’s sister live?");
        for key in ["ada's sister", "ada's", "ada", "sister", "sister live"] {
            assert!(keys.iter().any(|it| it == key), "{key}: {keys:?}");
        }
    }

    #[test]
    fn words_that_say_nothing_name_nothing() {
        let keys = keys("What was it of the garden?");
        assert!(keys.iter().all(|it| it.contains("garden")), "{keys:?}");
        assert_eq!(super::tests::keys(""), [""; 0]);
    }
}
