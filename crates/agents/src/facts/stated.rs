//! The part of a sentence that states something: without its question and its condition.

use super::words::{Part, Word};

/// A sentence without the condition that it is said under ("if you need me, call …") and without the
/// question that it ends with ("…, any tips?"). Absent where it only asks or supposes.
pub fn stated(words: &[Word]) -> Option<&[Word]> {
    without_condition(before_question(words)?)
}

/// Words that begin a question.
const QUESTION_WORDS: [&str; 24] = [
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
    let asks = |word: &Word| !word.is_mark && QUESTION_WORDS.contains(&word.low.as_str());
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

fn without_condition(words: &[Word]) -> Option<&[Word]> {
    if matches!(
        words.first()?.low.as_str(),
        "imagine" | "suppose" | "picture"
    ) {
        return None;
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
