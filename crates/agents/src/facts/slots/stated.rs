//! What of a sentence states something: not its question, and not what it only supposes.

use super::super::words::{Part, Word};

/// A sentence without the condition that it is said under ("if you need me, call …") and the question that it ends with ("…, any
/// tips?"); nothing where it only asks or supposes.
pub fn stated(words: &[Word]) -> Option<&[Word]> {
    supposed(before_question(requested(words))?)
}

/// What a polite request asks to do, without its question mark: "could you use Oslo for the weather?"
fn requested(words: &[Word]) -> &[Word] {
    let asks = |run: &[Word]| {
        matches!(run[0].low.as_str(), "could" | "can" | "would" | "will") && run[1].low == "you"
    };
    let (Some(last), Some(verb)) = (words.last(), words.get(2)) else {
        return words;
    };
    // "Guess who's a nurse now?"
    if let [guess, said @ .., _] = words
        && guess.low == "guess"
        && said.first().is_some_and(|who| who.low == "who")
        && last.low == "?"
    {
        return said;
    }
    let tells = [
        "use", "swap", "set", "update", "change", "switch", "put", "note", "replace", "remember",
        "save", "store", "adjust", "correct", "fix", "please",
    ];
    if last.low == "?" && asks(words) && tells.contains(&verb.low.as_str()) {
        return &words[2..words.len() - 1];
    }
    words
}

/// Words that begin a question.
const ASKING: [&str; 24] = [
    "any", "could", "can", "would", "how", "what", "where", "who", "which", "why", "when", "do",
    "does", "did", "is", "are", "am", "was", "should", "shall", "will", "whose", "have", "has",
];

fn before_question(words: &[Word]) -> Option<&[Word]> {
    if words
        .last()
        .is_none_or(|word| word.low != "?" && word.low != "？")
    {
        return Some(words);
    }
    let asks = |word: &Word| !word.is_mark && ASKING.contains(&word.low.as_str());
    let marks = words
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, word)| word.low == ",");
    let tail = marks.map(|(at, _)| at).find(|at| {
        let joins = |word: &Word| matches!(word.low.as_str(), "so" | "and" | "but");
        words[at + 1..]
            .iter()
            .find(|word| !joins(word))
            .is_some_and(asks)
    })?;
    let head = &words[..tail];
    (!head.first().is_some_and(asks)).then_some(head)
}

/// "If I mention Rex, that's my dog."
fn only_names(words: &[Word]) -> bool {
    let names = ["mention", "say", "said", "mentioned"];
    let [when, who, verb, ..] = words else {
        return false;
    };
    let then = words.windows(3).any(|run| {
        run[0].is_mark && matches!(run[1].low.as_str(), "that" | "it") && run[2].is(Part::Be)
    });
    matches!(when.low.as_str(), "if" | "when")
        && who.low == "i"
        && names.contains(&verb.low.as_str())
        && then
}

fn supposed(words: &[Word]) -> Option<&[Word]> {
    if matches!(
        words.first()?.low.as_str(),
        "imagine" | "suppose" | "picture"
    ) {
        return None;
    }
    if only_names(words) {
        return Some(words);
    }
    let is_if = |word: &Word| word.low == "if";
    let Some(at) = words.iter().position(is_if) else {
        return Some(words);
    };
    let comma = |words: &[Word]| words.iter().position(|word| word.low == ",");
    let main = match at {
        0 => &words[comma(words)? + 1..],
        _ if words[at - 1].is_mark => &words[..at - 1],
        _ => return None,
    };
    let is_open = main.iter().any(|word| is_if(word) || word.is(Part::Modal));
    (!is_open && !main.is_empty()).then_some(main)
}
