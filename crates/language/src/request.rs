//! The wording of a request: what a question says about the form of its answer, not about its topic. "Can you list, in
//! order, what we discussed about my garden?" is about a garden; "list", "order" and "discussed" match turns at random.

use crate::language::Language;
use crate::stopwords;
use crate::words::{self, Word};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// Letters of the shortest topic; a text that would leave less is kept whole.
const SHORTEST: usize = 4;

/// What a text is about. Where it asks for a summary, an overview or an order (`data/requests.txt`), runs of words that only
/// word the request, with the function words among them, are left out; every other text is its own topic.
pub fn topic(text: &str, language: Language) -> Cow<'_, str> {
    let Some(lists) = LISTS.get(language.code()) else {
        return Cow::Borrowed(text);
    };
    let words = words::of(text);
    if !holds(&lists.asks, &words) {
        return Cow::Borrowed(text);
    }
    let kept = lists.without_wording(&words, stopwords::of(language));
    let topic: Vec<&str> = kept.iter().map(|word| &text[word.span.clone()]).collect();
    let topic = topic.join(" ");
    if topic
        .chars()
        .filter(|letter| letter.is_alphanumeric())
        .count()
        < SHORTEST
    {
        return Cow::Borrowed(text);
    }
    Cow::Owned(topic)
}

/// Whether a text asks for a summary, an overview or an order.
pub fn is_request(text: &str, language: Language) -> bool {
    let lists = LISTS.get(language.code());
    lists.is_some_and(|lists| holds(&lists.asks, &words::of(text)))
}

/// Whether a text asks for all that was said of something.
pub fn gathers(text: &str, language: Language) -> bool {
    let lists = LISTS.get(language.code());
    lists.is_some_and(|lists| holds(&lists.gathers, &words::of(text)))
}

/// Whether a text asks how two are connected.
pub fn connects(text: &str, language: Language) -> bool {
    let lists = LISTS.get(language.code());
    lists.is_some_and(|lists| holds(&lists.connects, &words::of(text)))
}

/// The lists of a language.
#[derive(Default)]
struct Lists {
    /// Sequences of words by which a text asks for a summary or an order.
    asks: Vec<Vec<&'static str>>,
    /// Sequences of words by which it asks for all of something.
    gathers: Vec<Vec<&'static str>>,
    /// Sequences by which it asks how two are connected.
    connects: Vec<Vec<&'static str>>,
    /// Words of such requests.
    words: HashSet<&'static str>,
}

static LISTS: LazyLock<HashMap<&str, Lists>> = LazyLock::new(|| {
    let mut lists: HashMap<&str, Lists> = HashMap::new();
    for line in include_str!("../data/requests.txt").lines() {
        let Some((head, list)) = line.split_once(':') else {
            continue;
        };
        let (language, kind) = head.split_once(' ').unwrap_or((head, ""));
        let lists = lists.entry(language).or_default();
        let sequences = list.split_whitespace();
        let sequences = sequences.map(|entry| entry.split('_').collect());
        match kind {
            "asks" => lists.asks.extend(sequences),
            "gathers" => lists.gathers.extend(sequences),
            "connects" => lists.connects.extend(sequences),
            _ => lists.words.extend(list.split_whitespace()),
        }
    }
    lists
});

/// Whether one of the sequences stands in a text.
fn holds(sequences: &[Vec<&str>], words: &[Word]) -> bool {
    sequences.iter().any(|sequence| {
        words.windows(sequence.len()).any(|window| {
            window
                .iter()
                .map(|word| word.folded.as_str())
                .eq(sequence.iter().copied())
        })
    })
}

impl Lists {
    /// The words outside runs of wording: a run holds words of the list and stop words, and at least one of the former.
    fn without_wording<'a>(&self, words: &'a [Word], stops: &HashSet<String>) -> Vec<&'a Word> {
        let (mut kept, mut run, mut wording) = (Vec::new(), Vec::new(), false);
        for word in words {
            let (listed, stop) = (
                self.words.contains(word.folded.as_str()),
                stops.contains(word.folded.as_str()),
            );
            if listed || stop {
                wording |= listed;
                run.push(word);
                continue;
            }
            if !wording {
                kept.append(&mut run);
            }
            run.clear();
            wording = false;
            kept.push(word);
        }
        if !wording {
            kept.append(&mut run);
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wording_of_a_request_is_left_out() {
        let topic = |text| topic(text, Language::English).into_owned();
        assert_eq!(
            topic("Could you give me a short summary of how my vegetable garden developed?"),
            "vegetable garden"
        );
        assert_eq!(
            topic("In which order did we talk about the piano, the choir and Lisbon?"),
            "piano the choir and Lisbon"
        );
    }

    #[test]
    fn who_asks_for_all_of_something_is_heard() {
        let english = |text| gathers(text, Language::English);
        assert!(english("Can you list everything I said about the boat?"));
        assert!(english("What have I asked of you for the boat?"));
        assert!(!english("Did she like all the boats?"));
        let german = "Sag mir alles, was ich zum Boot gesagt habe.";
        assert!(gathers(german, Language::German));
    }

    #[test]
    fn who_asks_how_two_are_connected_is_heard() {
        let english = |text| connects(text, Language::English);
        assert!(english("How is Ada connected with the Otter Cup?"));
        assert!(english("What does Ada have to do with Lisbon?"));
        assert!(!english("How is Ada doing?"));
        assert!(connects("Was hat Ada mit Rom zu tun?", Language::German));
    }

    #[test]
    fn other_questions_are_their_own_topic() {
        for text in [
            "What did I order for lunch in Kyoto?",
            "Did she list the house in order to sell it?",
            "Which session did Ada mention?",
            "Summary?",
            "",
        ] {
            assert_eq!(topic(text, Language::English), text);
        }
        assert_eq!(topic("要約して", Language::Other), "要約して");
    }

    #[test]
    fn other_languages_have_their_lists() {
        assert_eq!(
            topic(
                "Bitte gib mir einen kurzen Überblick über unsere Gespräche zum Umzug nach Wien",
                Language::German
            ),
            "Umzug nach Wien"
        );
        assert_eq!(
            topic(
                "¿Puedes darme un resumen de la reforma de mi cocina?",
                Language::Spanish
            ),
            "reforma de mi cocina"
        );
    }

    proptest! {
        #[test]
        fn a_topic_is_never_empty_and_never_new(text in "\\PC{0,60}") {
            let text = format!("summary {text}");
            let topic = topic(&text, Language::English);
            prop_assert!(!topic.is_empty());
            let all: HashSet<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
            let new = topic.split(|c: char| !c.is_alphanumeric()).find(|word| !all.contains(word));
            prop_assert_eq!(new, None);
        }
    }
}
