//! Whether a query asks for what a fact claims. Only then does it matter for the answer that the fact is no longer so.

use std::collections::HashSet;

use memfleet_domain::fact::Draft;
use memfleet_language::mentions::{Person, Persons};
use memfleet_language::time::count_expressions;
use memfleet_language::{Analyzer, Language, fold};

use crate::facts::wordings;

/// Words that ask how something was, not how it is.
pub(crate) const PAST: [&str; 12] = [
    "previous",
    "previously",
    "before",
    "former",
    "formerly",
    "originally",
    "initially",
    "earlier",
    "prior",
    "past",
    "old",
    "ago",
];

/// Times that mean the present.
pub(crate) const NOW: [&str; 7] = [
    "these days",
    "nowadays",
    "today",
    "right now",
    "at the moment",
    "this year",
    "now",
];

/// A query, as it is held against facts.
pub struct Asking {
    analyzer: Analyzer,
    terms: HashSet<String>,
    is_first_person: bool,
    is_of_the_past: bool,
}

impl Asking {
    /// Reads a query.
    pub fn of(query: &str, language: Language) -> Self {
        let analyzer = Analyzer::new(language);
        let folded = fold(query);
        let words: Vec<&str> = folded
            .split(|letter: char| !letter.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect();
        let is_age = words.windows(2).any(|pair| pair == ["how", "old"]);
        let used_to = words.windows(2).any(|pair| pair == ["used", "to"]);
        let dated = NOW
            .iter()
            .fold(folded.clone(), |text, now| text.replace(now, " "));
        let past = words.iter().any(|word| PAST.contains(word)) && !is_age;
        Self {
            terms: analyzer.terms(query).into_iter().collect(),
            is_first_person: Persons::count(query, language).person() == Some(Person::First),
            is_of_the_past: past || used_to || count_expressions(&dated, language) > 0,
            analyzer,
        }
    }

    /// Whether it asks how things are now with what the fact tells of. `speaker` states the fact.
    pub fn is_for(&self, fact: &Draft, speaker: &str) -> bool {
        !self.is_of_the_past && self.is_about(fact, speaker)
    }

    /// True where it asks, at whatever time, for the attribute of the fact. False for a statement in
    /// its own words, which has no attribute.
    pub fn is_about(&self, fact: &Draft, speaker: &str) -> bool {
        !fact.is_statement() && self.names(fact, speaker) && self.has_attribute(fact)
    }

    /// Whether it asks how something was.
    pub fn is_of_the_past(&self) -> bool {
        self.is_of_the_past
    }

    /// Whether who asks speaks of themselves.
    pub fn is_first_person(&self) -> bool {
        self.is_first_person
    }

    /// Whether it is about the fact's subject.
    fn names(&self, fact: &Draft, speaker: &str) -> bool {
        let is_speaker = fold(speaker) == fact.claim.subject;
        (is_speaker && self.is_first_person) || self.has_any(&fact.claim.subject)
    }

    fn has_any(&self, name: &str) -> bool {
        let terms = self.analyzer.terms(name);
        terms.iter().any(|term| self.terms.contains(term))
    }

    fn has_attribute(&self, fact: &Draft) -> bool {
        let has = |text: &str| {
            let terms = self.analyzer.terms(text);
            // Of "number of cats" and "favorite color" the last word says what is meant.
            terms.last().is_some_and(|term| self.terms.contains(term))
        };
        let first = |text: &str| {
            let terms = self.analyzer.terms(text);
            terms.first().is_some_and(|term| self.terms.contains(term))
        };
        let attribute = fact.claim.attribute.as_str();
        has(attribute) || first(fact.predicate()) || wordings(attribute).any(first)
    }
}

#[cfg(test)]
mod tests {
    use chrono_tz::UTC;
    use memfleet_domain::ids::TurnId;
    use memfleet_domain::time::Timestamp;
    use memfleet_domain::turn::{Role, Trust};
    use memfleet_ports::conformance::knowledge::{fact, statement};
    use memfleet_ports::conformance::samples::{instant, turn};

    use super::*;
    use crate::facts::{Utterance, facts};

    fn is_for(query: &str, said: &str) -> bool {
        let turn = Utterance {
            id: TurnId::from_bytes([1; 16]),
            speaker: "Ada",
            role: Role::User,
            trust: Trust::User,
            text: said,
            said_at: Timestamp::UNIX_EPOCH,
        };
        let drafts = facts(&turn, &[], Language::English, UTC);
        let asking = Asking::of(query, Language::English);
        drafts.iter().any(|draft| asking.is_for(draft, "Ada"))
    }

    #[test]
    fn no_query_asks_for_the_attribute_of_a_statement() {
        let statement = statement(&turn("1", "I live in Rome."), "I live in Rome.", instant(1));
        let of_rules = fact(&turn("1", "I live in Rome."), "Ada", "Rome", instant(1));
        let with_clause = Draft {
            statement: statement.fact().unwrap().statement,
            ..of_rules.fact().unwrap().clone()
        };
        let asking = Asking::of("Where do I live?", Language::English);
        assert!(asking.is_for(of_rules.fact().unwrap(), "Ada"));
        assert!(!asking.is_for(&with_clause, "Ada"));
    }

    #[test]
    fn a_query_asks_for_the_attribute_however_it_is_worded() {
        for (query, said) in [
            ("Where does Ada live?", "I moved to Rome."),
            ("Where do I live these days?", "I moved to Rome."),
            ("Which company does Ada work for?", "I joined Initech."),
            (
                "What is Ada's phone number?",
                "My phone number is 555-0147.",
            ),
            ("How old is Ada?", "I am 32 years old."),
        ] {
            assert!(is_for(query, said), "{query} / {said}");
        }
    }

    #[test]
    fn it_asks_for_nothing_else_and_for_nobody_else() {
        for (query, said) in [
            ("Where does Ben live?", "I moved to Rome."),
            ("What does Ada cook?", "I moved to Rome."),
            ("Where did Ada live before?", "I moved to Rome."),
            (
                "Where did I use to live? I used to live abroad.",
                "I moved to Rome.",
            ),
        ] {
            assert!(!is_for(query, said), "{query} / {said}");
        }
    }
}
