//! What a query may name an entity by: runs of its words, written as the keys of entities are, and the speakers that it mentions.

use std::collections::BTreeSet;

use memfleet_language::{Analyzer, fold};

/// Words of a name, at most.
const LONGEST: usize = 5;

/// The words of a query, from which the keys of entities are made where the graph is asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Naming {
    /// Folded, each with whether it says something by itself.
    words: Vec<(String, bool)>,
    mentioned: Vec<String>,
}

impl Naming {
    pub(super) fn of(text: &str, mentioned: &[String], analyzer: &Analyzer) -> Self {
        let folded = fold(text).replace('’', "'");
        let is_edge = |letter: char| !letter.is_alphanumeric();
        let words = folded.split_whitespace().map(|it| it.trim_matches(is_edge));
        let telling: BTreeSet<String> = analyzer.query_terms(text).into_iter().collect();
        let tells = |word: &str| analyzer.terms(word).iter().any(|it| telling.contains(it));
        let words = words.filter(|word| !word.is_empty());
        Self {
            words: words.map(|word| (word.to_owned(), tells(word))).collect(),
            mentioned: mentioned.iter().map(|name| fold(name)).collect(),
        }
    }

    /// Keys that entities may have, each once. Words that say nothing by themselves name nothing.
    pub(crate) fn keys(&self) -> BTreeSet<String> {
        let runs = (1..=LONGEST).flat_map(|length| self.words.windows(length));
        let mut keys: BTreeSet<String> = self.mentioned.iter().cloned().collect();
        for run in runs.filter(|run| run.iter().any(|(_, tells)| *tells)) {
            let words: Vec<&str> = run.iter().map(|(word, _)| word.as_str()).collect();
            let key = words.join(" ");
            keys.extend(key.strip_suffix("'s").map(str::to_owned));
            keys.insert(key);
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use memfleet_language::Language;

    use super::*;

    fn keys(text: &str) -> Vec<String> {
        let naming = Naming::of(text, &[], &Analyzer::new(Language::English));
        naming.keys().into_iter().collect()
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
