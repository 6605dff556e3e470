//! What a query asks for (B), which memory that is, and how many memories it takes (K), by its wording.

use memfleet_domain::intent::Intent;
use memfleet_language::Language;

use super::cues;
use super::words::{Gap, Text};

/// The three kinds of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Granularity {
    /// Turns as they were said.
    Raw,
    /// Summaries of turns.
    Episode,
    /// Single facts.
    Fact,
}

impl Granularity {
    /// All, in the order of the routing.
    pub const ALL: [Self; 3] = [Self::Raw, Self::Episode, Self::Fact];
}

/// `K_dyn` where one answer is wanted, some (or a story), or all there are.
const ONE: u32 = 1;
const SOME: u32 = 10;
const ALL: u32 = 30;
/// The most that a number in the query may ask for.
const MOST: u32 = 100;
/// Digits of the shortest figure that a query repeats rather than counts by.
const FIGURE: usize = 3;

/// B, as the wording tells.
pub(super) fn heard(query: &Text<'_>, language: Language) -> Intent {
    let has = |kind| cues::has(query, language, kind);
    let fine = has("fine") || is_quoting(query.text) || has_figure(query);
    let (abstracted, event) = (has("abstract"), has("event"));
    Intent {
        fine,
        abstracted,
        event,
        atomic: !(fine || abstracted || event) && has("single"),
    }
}

/// O = f(B): raw where details are asked for, else episodes for summaries and events, else facts.
pub fn route(intent: Intent) -> Granularity {
    match intent {
        Intent { fine: true, .. } => Granularity::Raw,
        Intent {
            abstracted: true, ..
        }
        | Intent { event: true, .. } => Granularity::Episode,
        _ => Granularity::Fact,
    }
}

/// K = max(`K_dyn`, `K_m`).
pub fn effective_k(k_dyn: u32, k_m: u32) -> u32 {
    k_dyn.max(k_m)
}

pub(super) fn k_dyn(query: &Text<'_>, intent: Intent, language: Language) -> u32 {
    let has = |kind| cues::has(query, language, kind);
    if let Some(count) = counted(query, language) {
        return count;
    }
    if has("all") {
        ALL
    } else if has("some") || intent.abstracted || intent.event || asks_plural(query, language) {
        SOME
    } else {
        ONE
    }
}

/// The number after a word that counts: "which two", "the last 5".
fn counted(query: &Text<'_>, language: Language) -> Option<u32> {
    let is_one_of = |kind, word: &str| {
        let sequences = cues::sequences(language, kind);
        sequences
            .iter()
            .position(|sequence| sequence.as_slice() == [word])
    };
    query.words.windows(2).find_map(|pair| {
        let [before, number] = pair else { return None };
        is_one_of("counts", &before.folded)?;
        let named = || Some(is_one_of("numbers", &number.folded)? as u32 + 2);
        let digits = || number.folded.parse().ok();
        let count = if number.is_time {
            None
        } else {
            digits().or_else(named)
        };
        count.filter(|count| (2..=MOST).contains(count))
    })
}

/// "Which books": English plurals after the word that asks.
fn asks_plural(query: &Text<'_>, language: Language) -> bool {
    let is_plural = |word: &str| {
        let is_noun = !matches!(word, "does" | "this");
        word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") && is_noun
    };
    language == Language::English
        && query.words.windows(2).any(|pair| {
            matches!(pair[0].folded.as_str(), "which" | "what")
                && pair[1].gap == Gap::Blank
                && is_plural(&pair[1].folded)
        })
}

/// Whether something stands between quotation marks.
fn is_quoting(text: &str) -> bool {
    let marks = [('"', '"'), ('“', '”'), ('„', '“'), ('«', '»'), ('「', '」')];
    marks.iter().any(|&(open, close)| {
        let rest = text.split_once(open).map(|(_, rest)| rest);
        rest.and_then(|rest| rest.split_once(close))
            .is_some_and(|(quoted, _)| quoted.contains(char::is_alphanumeric))
    })
}

/// Whether it repeats a figure or a code that is no date.
fn has_figure(query: &Text<'_>) -> bool {
    query.words.iter().any(|word| {
        !word.is_time
            && word.folded.len() >= FIGURE
            && word.folded.chars().any(|letter| letter.is_ascii_digit())
    })
}
