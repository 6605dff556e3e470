//! Whether a clause tells of a value how things are now, of who says it.

use std::ops::Range;

use super::super::words::{Form, Part, Word};
use super::is_cue;
use super::lists::{has_any, is_among};

/// Whether a clause of a sentence tells of a value how things are now, with who says it.
pub fn states(words: &[Word], clause: &Range<usize>, value: &Range<usize>) -> bool {
    // What the value is made of says nothing of it ("The Clockmaker's Niece").
    let around = [
        &words[clause.start..value.start.max(clause.start)],
        &words[value.end.min(clause.end)..clause.end],
    ];
    let is_left_open = |part: &&[Word]| {
        is_of_others(part, words)
            || is_planned(part)
            || has_any("plan", part)
            || has_any("past", part)
    };
    !around.iter().any(is_left_open)
        && !is_of_named(words, clause, value)
        && !is_who_did(words, clause, value)
        && !was(&words[clause.clone()], words)
}

/// Whether it tells of somebody else; what others do to what is the speaker's is no such thing ("my boss moved our meeting").
fn is_of_others(part: &[Word], sentence: &[Word]) -> bool {
    let changes = [
        "moved",
        "changed",
        "pushed",
        "set",
        "rescheduled",
        "switched",
        "put",
        "gave",
        "raised",
    ];
    // "Our dog …, she's Finn now".
    let own = ["my", "our", "we", "i", "cat", "dog"];
    let is_own = sentence.iter().any(|word| own.contains(&word.low.as_str()))
        && !sentence.iter().any(|word| is_other(&word.low));
    (0..part.len()).any(|at| {
        let low = part[at].low.as_str();
        let does = part
            .get(at + 1)
            .is_some_and(|verb| changes.contains(&verb.low.as_str()));
        let own = part
            .get(at + 2)
            .is_some_and(|word| matches!(word.low.as_str(), "our" | "my" | "me" | "us" | "the"));
        // "My wife and I".
        let with_me = part[at..]
            .windows(2)
            .take(3)
            .any(|pair| pair[0].low == "and" && pair[1].low == "i");
        let is_it = (is_other(low) && !with_me) || (is_among("they", low) && !is_own);
        (is_it || is_their_team(&part[at..])) && !part[at].is_mark && !(does && own)
    })
}

/// "The data team"; what is so "on the team" is the speaker's.
fn is_their_team(words: &[Word]) -> bool {
    let [the, which, team, rest @ ..] = words else {
        return false;
    };
    // "The weekly team meeting" is the speaker's.
    let acts = rest
        .first()
        .is_none_or(|word| word.is_mark || word.verb().is_some() || word.is_any(&GRAMMAR));
    acts && the.low == "the"
        && team.low == "team"
        && !matches!(
            which.low.as_str(),
            "whole" | "entire" | "same" | "new" | "old"
        )
}

/// "brother", "neighbours", "mother-in-law", "boss's".
pub fn is_other(low: &str) -> bool {
    let low = low.trim_end_matches("'s");
    let head = low.split('-').next().unwrap_or(low);
    let one = head.strip_suffix('s').unwrap_or(head);
    [low, head, one].iter().any(|word| is_among("other", word))
}

/// Words that are no names, however they are written.
const GRAMMAR: [Part; 8] = [
    Part::Determiner,
    Part::Preposition,
    Part::Adverb,
    Part::Modal,
    Part::Be,
    Part::Have,
    Part::Do,
    Part::Negation,
];

/// Whether words tell of who says them.
fn is_first_person(words: &[Word]) -> bool {
    const FIRST: [&str; 8] = ["i", "my", "our", "we", "me", "us", "mine", "myself"];
    words.iter().any(|word| FIRST.contains(&word.low.as_str()))
}

/// Whether the clause tells of somebody whom it names ("Ben drives a Tesla", "Ben's rent"), and not of what is the speaker's.
fn is_of_named(words: &[Word], clause: &Range<usize>, value: &Range<usize>) -> bool {
    let is_mine = is_first_person(&words[clause.clone()]);
    let is_named = |at: usize| {
        let word = &words[at];
        let opens = at == 0 || words[at - 1].is_mark;
        let owns = word.low.ends_with("'s");
        let acts = words.get(at + 1).is_some_and(|next| {
            let is_finite = |form| matches!(form, Form::Present | Form::Past);
            next.is_any(&[Part::Be, Part::Have])
                || next.verb().is_some_and(|(_, form)| is_finite(form))
        });
        let is_name = word.is_name() && !word.is_any(&GRAMMAR);
        let says_s = matches!(
            words.get(at + 1).and_then(Word::verb),
            Some((_, Form::Present))
        );
        let is_others = if opens {
            acts && !is_mine
        } else {
            acts && (says_s || !is_mine)
        };
        is_name && (owns || is_others) && !(opens && is_cue(word))
    };
    clause
        .clone()
        .filter(|at| !value.contains(at))
        .any(is_named)
}

/// Whether the value is who did what the clause tells, and nothing of it is the speaker's: "Noor adopted a dog called Rex" names no dog Noor.
fn is_who_did(words: &[Word], clause: &Range<usize>, value: &Range<usize>) -> bool {
    let opens = value.start == clause.start && value.len() == 1 && words[value.start].is_name();
    let next = words.get(value.end);
    let did = next.and_then(Word::verb);
    opens && matches!(did, Some((_, Form::Past))) && !is_first_person(&words[clause.clone()])
}

/// Whether its verb leaves it open.
fn is_planned(part: &[Word]) -> bool {
    (0..part.len().saturating_sub(1)).any(|at| {
        let next = part[at + 1].low.as_str();
        // "You'll find me in Oslo" is so now.
        let is_mine = at == 0 || !matches!(part[at - 1].low.as_str(), "you" | "they" | "people");
        match part[at].low.as_str() {
            "should" => !["be", "have", "mention", "add", "say", "note"].contains(&next),
            "would" => !["say", "call"].contains(&next),
            "will" => is_mine && !["always", "forever", "never"].contains(&next),
            "may" => !next.starts_with(|letter: char| letter.is_ascii_digit()),
            _ => false,
        }
    })
}

/// "was" of a state; what was changed is so now.
fn was(clause: &[Word], sentence: &[Word]) -> bool {
    let has = |words: &[Word], among: &[&str]| {
        words.iter().any(|word| among.contains(&word.low.as_str()))
    };
    if has(clause, &["meant", "today"]) {
        return false;
    }
    let past = ["had", "owned", "studied", "lived", "drove", "ate"];
    // "I've had it forever".
    let is_past = (0..clause.len()).any(|at| {
        past.contains(&clause[at].low.as_str()) && !(at > 0 && clause[at - 1].low == "have")
    });
    if is_past && !has(sentence, &["now", "today", "new"]) {
        return true;
    }
    let Some(at) = clause
        .iter()
        .position(|word| matches!(word.low.as_str(), "was" | "were"))
    else {
        return false;
    };
    let never = at > 0 && clause[at - 1].low == "never";
    let next = clause[at + 1..].iter().find(|word| !word.is(Part::Adverb));
    let is_done = next.is_some_and(|word| {
        word.low.ends_with("ed") || matches!(word.verb(), Some((_, Form::Past | Form::Participle)))
    });
    !is_done && !never
}
