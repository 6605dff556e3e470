//! Which of a sentence's values hold by what it says.

use std::ops::Range;

use super::super::clauses::parts;
use super::super::words::{Form, Part, Word};
use super::assertion::{is_other, states};
use super::is_cue;
use super::lists::{has_any, is_among, joined};
use super::shapes::Shape;

/// The values that are not said to be over; where some are said to be new, those.
pub fn values(shape: Shape, words: &[Word]) -> Vec<Range<usize>> {
    let clauses = clauses(words);
    let mut found = shaped(shape, words);
    found.retain(|value| {
        let clause = clauses.iter().find(|clause| clause.contains(&value.start));
        let Some(clause) = clause else { return false };
        let is_so = is_apposed(words, clause, value) || states(words, clause, value);
        let is_told = is_so && !is_over(words, value) && !denies(&words[clause.end..]);
        is_told || is_pointed_at(words, value)
    });
    let is_present = |value: &Range<usize>| {
        let clause = clauses.iter().find(|clause| clause.contains(&value.start));
        clause.is_some_and(|clause| has_any("present", &words[clause.clone()]))
    };
    prefer(&mut found, is_present);
    prefer(&mut found, |value| is_new(words, value));
    found
}

/// Whether a value stands beside what it is of, whatever else is told of it: "our dog Rex ate it", "ask Ben, my team lead".
fn is_apposed(words: &[Word], clause: &Range<usize>, value: &Range<usize>) -> bool {
    let is_own = |word: &Word| matches!(word.low.as_str(), "my" | "our");
    let after = words.get(value.end..).unwrap_or_default();
    let before = match &words[..value.start] {
        // "Our dog, Rex, …"; not "we renamed our dog, Rex is Bo now".
        [rest @ .., comma] if comma.low == "," && after.first().is_none_or(|it| it.is_mark) => rest,
        before => before,
    };
    let follows = match before {
        [.., own, noun] if is_own(own) => is_cue(noun),
        [.., own, which, noun] if is_own(own) => {
            is_cue(noun) && !which.is_mark && !is_other(&which.low)
        }
        _ => false,
    };
    let leads = match after {
        [comma, own, rest @ ..] if comma.low == "," && is_own(own) => {
            let ends = rest.iter().position(|word| word.is_mark);
            let noun = &rest[..ends.unwrap_or(rest.len())];
            noun.len() <= 3 && noun.last().is_some_and(is_cue)
        }
        _ => false,
    };
    (follows || leads) && !has_any("plan", &words[clause.clone()])
}

/// Whether the sentence goes on to say whose it is: "don't call me on Monday, that's my gym day".
fn is_pointed_at(words: &[Word], value: &Range<usize>) -> bool {
    let after = words.get(value.end..).unwrap_or_default();
    after.windows(5).take(2).any(|run| {
        let points = run[0].low == "," && run[1].low == "that" && run[2].is(Part::Be);
        let own = matches!(run[3].low.as_str(), "my" | "our");
        points && run[2].low == "is" && own && is_cue(&run[4])
    }) && !after
        .iter()
        .any(|word| matches!(word.low.as_str(), "not" | "never" | "old"))
}

/// Whether what follows a clause takes it back: ", but they're not my favorite", ", but I don't."
fn denies(after: &[Word]) -> bool {
    let opens = |word: &&Word| word.is_mark || word.is_any(&[Part::Opening, Part::Cut]);
    let rest: Vec<&Word> = after.iter().skip_while(opens).take(4).collect();
    let [who, does, not, next @ ..] = &rest[..] else {
        return false;
    };
    let of_it = matches!(who.low.as_str(), "they" | "it" | "that") && does.is(Part::Be);
    let of_me = who.low == "i" && does.low == "do" && next.first().is_none_or(|word| word.is_mark);
    (of_it || of_me) && not.low == "not"
}

/// Of several values those that are such, if some are.
pub fn prefer(found: &mut Vec<Range<usize>>, is_such: impl Fn(&Range<usize>) -> bool) {
    if found.len() > 1 && found.iter().any(&is_such) {
        found.retain(is_such);
    }
}

/// The clauses of a sentence, by place. What has no verb of its own belongs to the one before ("the wrong number, 555-0147") unless it
/// tells a change ("from 38 to 40 now"), and what only says when or where belongs to the one after ("back in school, …").
pub fn clauses(words: &[Word]) -> Vec<Range<usize>> {
    let is_verbal = |word: &Word| {
        word.is_any(&[Part::Be, Part::Have, Part::Do, Part::Modal])
            || word.verb().is_some()
            // "My car's a Honda".
            || (!word.is_mark && !word.is_name() && word.low.ends_with("'s"))
            || (!word.is_mark && word.low.ends_with("ed"))
    };
    let mut clauses: Vec<Range<usize>> = Vec::new();
    let mut leads = false;
    for part in parts(words) {
        let Some(start) = place(words, part) else {
            continue;
        };
        let end = start + part.len();
        let first = part[0].low.as_str();
        let has_verb = part.iter().any(is_verbal);
        let changes = matches!(first, "from" | "to" | "now" | "no" | "instead");
        let is_first = clauses.is_empty();
        match clauses.last_mut() {
            Some(last) if leads || !(has_verb || changes) => last.end = end,
            _ => clauses.push(start..end),
        }
        let opens = (is_first && start == 0) || leads;
        let is_lead = !has_verb
            && !matches!(first, "after" | "instead" | "from" | "no")
            && !part[0].is(Part::Pronoun);
        leads = opens
            && (is_lead || matches!(first, "before" | "when" | "while" | "until" | "back"))
            && !matches!(part, [word] if word.is_any(&[Part::Opening, Part::Adverb]));
    }
    clauses
}

/// All that looks like a value of this kind.
pub fn shaped(shape: Shape, words: &[Word]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        match shape.length(words, at) {
            Some(length) => {
                found.push(at..at + length);
                at += length;
            }
            None => at += 1,
        }
    }
    found
}

/// Whether the words around a value say that it was.
fn is_over(words: &[Word], value: &Range<usize>) -> bool {
    let before = &words[value.start.saturating_sub(3)..value.start];
    // Only up to a mark.
    let mark = before.iter().rposition(|word| word.is_mark);
    let before = &before[mark.map_or(0, |mark| mark + 1)..];
    let after = &words[value.end..words.len().min(value.end + 2)];
    let ends = |word: &Word| word.is_mark || matches!(word.low.as_str(), "and" | "but" | "so");
    let mark = after.iter().position(ends);
    let mut after = &after[..mark.unwrap_or(after.len())];
    // Who "was promoted" is so now.
    if let [was, done] = after
        && was.low == "was"
        && matches!(done.verb(), Some((_, Form::Past | Form::Participle)))
    {
        after = &[];
    }
    // "no longer X but Y", "moved from X to Y": what is nearest counts.
    let last = before.len().saturating_sub(1);
    let nearest = before
        .iter()
        .enumerate()
        .rev()
        // "Over in Rome" is where it is.
        .filter(|(at, word)| word.low != "over" || *at == last)
        .map(|(_, word)| word)
        .find(|word| is_among("before_old", &word.low) || is_among("before_new", &word.low));
    let is_now = after.first().is_some_and(|word| word.low == "now");
    let is_old = !is_now && nearest.is_some_and(|word| is_among("before_old", &word.low))
        || before
            .windows(2)
            .any(|pair| is_among("before_old", &joined(pair)))
        || before
            .iter()
            .any(|word| matches!(word.low.as_str(), "not" | "never"));
    // "Rex is called Bo now".
    let is_renamed = matches!(&words[value.end..], [is, called, _, ..]
        if is.low == "is" && matches!(called.low.as_str(), "called" | "named"));
    is_old || is_renamed || is_denied(words, value) || has_any("after_old", after)
}

/// Whether the clause denies what it says of the value: "don't live in Rome", "Rome on the map isn't my home".
fn is_denied(words: &[Word], value: &Range<usize>) -> bool {
    let before = words[..value.start].iter().rev().take(8);
    let mut clause = before
        .take_while(|word| !word.is_mark && !matches!(word.low.as_str(), "but" | "so" | "and"));
    let after = words[value.end..].iter().take(8);
    let after: Vec<&str> = after
        .take_while(|word| !word.is_mark && !matches!(word.low.as_str(), "but" | "so" | "and"))
        .map(|word| word.low.as_str())
        .collect();
    clause.any(|word| matches!(word.low.as_str(), "not" | "never"))
        || after
            .windows(2)
            .any(|pair| matches!(pair, ["is" | "was" | "are", "not"]))
}

fn is_new(words: &[Word], value: &Range<usize>) -> bool {
    let before = &words[value.start.saturating_sub(2)..value.start];
    let after = words.get(value.end..).unwrap_or_default();
    before.iter().any(|word| is_among("before_new", &word.low))
        || after
            .first()
            .is_some_and(|word| matches!(word.low.as_str(), "is" | "now" | "it"))
}

/// Where a stretch of a sentence begins in it.
pub fn place(words: &[Word], part: &[Word]) -> Option<usize> {
    let first = part.first()?;
    let is_it = |word: &Word| word.span == first.span && word.low == first.low;
    words.iter().position(is_it)
}
