//! From a sentence to the clauses that state something. What asks, supposes, wishes, doubts or plans states nothing.

use super::stated::stated;
use super::words::{Part, Word};

/// The clauses of a sentence, as stretches of its words; none of a question or of what is only supposed.
pub fn clauses(words: &[Word]) -> Vec<&[Word]> {
    let Some(words) = stated(words) else {
        return Vec::new();
    };
    if words.iter().any(|word| word.is(Part::Hypothetical)) {
        return Vec::new();
    }
    parts(words)
}

/// The stretches of a sentence between its marks and the words that join clauses.
pub fn parts(words: &[Word]) -> Vec<&[Word]> {
    let mut clauses = Vec::new();
    let mut first = 0;
    for (at, word) in words.iter().enumerate() {
        let joins = matches!(
            word.low.as_str(),
            "and"
                | "but"
                | "so"
                | "because"
                | "although"
                | "though"
                | "while"
                | "then"
                | "which"
                | "plus"
        );
        let breaks = word.is_mark && !matches!(word.low.as_str(), "'" | "\"" | "#" | "%");
        // "iPhone 14 Plus" joins nothing.
        let joins = joins && word.text != "Plus";
        let is_bound = breaks || (joins && opens_clause(&words[at + 1..]));
        if is_bound {
            if at > first {
                clauses.push(&words[first..at]);
            }
            first = at + 1;
        }
    }
    if first < words.len() {
        clauses.push(&words[first..]);
    }
    clauses
}

/// Whether a clause of its own begins here: with a subject and its verb, or with a verb that goes on from the subject before.
fn opens_clause(words: &[Word]) -> bool {
    let mut words = words
        .iter()
        .skip_while(|word| word.is_any(&[Part::Adverb, Part::Opening]));
    let Some(first) = words.next() else {
        return false;
    };
    if first.is(Part::Pronoun)
        || first.is_possessive()
        || first.is_any(&[Part::Be, Part::Have, Part::Do, Part::Modal, Part::Future])
    {
        return true;
    }
    if first.verb().is_some() {
        return true;
    }
    // A name, or a noun with its article, and then a verb.
    words.take(4).any(|word| {
        word.is_any(&[Part::Be, Part::Have])
            || word
                .verb()
                .is_some_and(|(_, form)| form != super::words::Form::Base)
    })
}

/// What was said and what was meant, of a sentence that takes one for the other: "I said I live in Rome but I meant Oslo".
pub fn corrected(words: &[Word]) -> Option<(&[Word], &[Word])> {
    let said = words
        .iter()
        .position(|word| matches!(word.low.as_str(), "said" | "told" | "wrote" | "typed"))?;
    let meant = meant(words)?;
    let told = words.get(said + 1..meant)?;
    let first = usize::from(told.first()?.low == "that");
    let end = told
        .iter()
        .position(|word| word.is_mark || matches!(word.low.as_str(), "but" | "and"))?;
    let value = &words[meant + 1..];
    let stop = value
        .iter()
        .position(|word| word.is_mark && word.low != "$");
    let value = &value[..stop.unwrap_or(value.len())];
    (end > first && !value.is_empty()).then(|| (&told[first..end], value))
}

/// The word that the value stands behind: "but I meant", "I should have written".
fn meant(words: &[Word]) -> Option<usize> {
    let ought = |run: &[Word]| {
        let is = |at: usize, word: &str| run[at].low == word;
        let puts = ["said", "written", "typed", "put", "told"];
        is(0, "should") && is(1, "have") && puts.contains(&run[2].low.as_str())
    };
    let meant = words.iter().position(|word| word.low == "meant");
    // "But it's Oslo".
    let is = |run: &[Word]| {
        run[0].low == "but" && run[1].low == "it" && matches!(run[2].low.as_str(), "is" | "was")
    };
    meant
        .or_else(|| Some(words.windows(3).position(ought)? + 2))
        .or_else(|| Some(words.windows(3).position(is)? + 2))
}
