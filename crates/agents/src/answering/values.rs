//! Answers with facts that may act: those that a caller corrected or a model extracted. All that hold are
//! given, the newest first. A question about the past is answered by those that held then, with their dates.

use std::collections::{HashMap, HashSet};

use memfleet_domain::derivation::{Derivation, Origin};
use memfleet_domain::fact::{Claim, Draft};
use memfleet_domain::time::{TimeRange, Timestamp};
use memfleet_domain::turn::Role;

use super::wanted::{Wanted, Word};
use super::{Evidence, Question, Source, Statement, day};
use crate::asking::Asking;
use crate::facts::{may_act, wordings};

/// Turns that are named for one fact.
const SOURCES: usize = 3;

/// What can be measured: "how old" asks for a value, "how" alone for a story.
const MEASURES: [&str; 9] = [
    "old", "many", "much", "tall", "big", "large", "far", "heavy", "high",
];

/// A fact and the turn that states it.
#[derive(Clone, Copy)]
struct Stated<'s> {
    place: usize,
    derivation: &'s Derivation,
    draft: &'s Draft,
    speaker: &'s str,
    role: Role,
    /// From when it holds.
    since: Timestamp,
}

/// Terms by subject and attribute.
type Beside<'s> = HashMap<(&'s str, &'s str), HashSet<String>>;

/// The answer in facts; none where no fact answers.
pub fn values(
    question: &Question<'_>,
    asking: &Asking,
    wanted: &Wanted,
    evidence: &[Evidence<'_>],
) -> Vec<Statement> {
    if !asks_for_value(question.text) {
        return Vec::new();
    }
    let stated = stated(evidence);
    let beside = beside(wanted, &stated);
    let answers = |fact: &&Stated<'_>| {
        asking.is_about(fact.draft, fact.speaker)
            && (fact.role == Role::User || !asking.is_first_person())
            && is_of(wanted, asking, fact)
            && is_covered(wanted, fact, &beside)
            && holds(question, asking, wanted, fact)
    };
    let mut found: Vec<&Stated<'_>> = stated.iter().filter(answers).collect();
    found.sort_by_key(|fact| std::cmp::Reverse(fact.since));
    said(question, asking, found)
}

/// Whether a thing or a person is asked for, and not a reason, a way or a time: facts tell no more than that.
fn asks_for_value(text: &str) -> bool {
    let folded = memfleet_language::fold(text);
    let mut words = folded
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .peekable();
    while let Some(word) = words.next() {
        let is_story = match word {
            "why" | "when" => true,
            "how" => !words.peek().is_some_and(|next| MEASURES.contains(next)),
            _ => false,
        };
        if is_story {
            return false;
        }
    }
    true
}

fn stated<'e>(evidence: &'e [Evidence<'_>]) -> Vec<Stated<'e>> {
    let places = evidence.iter().enumerate();
    let facts = places.flat_map(|(place, found)| {
        found.facts.iter().filter_map(move |derivation| {
            let turn = &found.turn.accepted;
            Some(Stated {
                place,
                derivation,
                draft: derivation.fact()?,
                speaker: turn.speaker.as_str(),
                role: turn.role,
                since: derivation.valid.start.unwrap_or(turn.effective_time()),
            })
        })
    });
    facts
        .filter(|fact| may_act(fact.derivation) && !fact.derivation.is_withdrawn())
        .collect()
}

/// What the facts say of the same thing, where it has one value at a time: who asks "in Rome?" may be told Oslo.
fn beside<'s>(wanted: &Wanted, stated: &[Stated<'s>]) -> Beside<'s> {
    let mut beside = Beside::new();
    for fact in stated.iter().filter(|fact| fact.has_one_value()) {
        beside
            .entry(fact.thing())
            .or_default()
            .extend(fact.terms(wanted));
    }
    beside
}

impl<'s> Stated<'s> {
    /// What it tells of.
    fn thing(&self) -> (&'s str, &'s str) {
        let claim = &self.draft.claim;
        (&claim.subject, &claim.attribute)
    }

    /// Whether another value takes the place of this one.
    fn has_one_value(&self) -> bool {
        wordings(&self.draft.claim.attribute).next().is_some()
    }

    /// The terms of its sentence and of its value.
    fn terms(&self, wanted: &Wanted) -> HashSet<String> {
        let (sentence, value) = (&self.draft.text, &self.draft.claim.value);
        let terms = [sentence, value].map(|text| wanted.analyzer.terms(text));
        terms.into_iter().flatten().collect()
    }
}

/// Whether the question is about the whole subject: Ada's sister is not Ada.
fn is_of(wanted: &Wanted, asking: &Asking, fact: &Stated<'_>) -> bool {
    let subject = &fact.draft.claim.subject;
    let is_speaker = memfleet_language::fold(fact.speaker) == *subject;
    let terms = wanted.analyzer.query_terms(subject);
    let is_named = || wanted.speakers.iter().any(|name| name == fact.speaker);
    is_speaker && (asking.is_first_person() || is_named())
        || terms.iter().all(|term| wanted.all.contains(term))
}

/// Whether the fact, or what is told beside it, has every word of the question, and a fact that denies has the value that is asked about.
fn is_covered<'s>(wanted: &Wanted, fact: &Stated<'s>, beside: &Beside<'s>) -> bool {
    let attribute = fact.draft.claim.attribute.as_str();
    let mut tells = fact.terms(wanted);
    tells.extend(beside.get(&fact.thing()).into_iter().flatten().cloned());
    tells.extend(wanted.analyzer.terms(attribute));
    tells.extend(wordings(attribute).flat_map(|wording| wanted.analyzer.terms(wording)));
    let has = |word: &Word| {
        word.is_time
            || (word.is_sort && fact.has_one_value())
            || word.terms.iter().all(|term| tells.contains(term))
    };
    let value = wanted.analyzer.terms(&fact.draft.claim.value);
    let is_asked_about = || value.iter().all(|term| wanted.all.contains(term));
    wanted.words.iter().all(has) && (!fact.draft.is_negated() || is_asked_about())
}

/// Whether it holds when the question means.
fn holds(question: &Question<'_>, asking: &Asking, wanted: &Wanted, fact: &Stated<'_>) -> bool {
    let valid = fact.derivation.valid;
    if !asking.is_of_the_past() {
        return valid.contains(question.holds_at);
    }
    if wanted.times.is_empty() {
        return valid.end.is_some_and(|end| end <= question.holds_at);
    }
    // What happened did so when it began; what was so went on.
    wanted
        .times
        .iter()
        .any(|time| time.contains(fact.since) || (fact.has_one_value() && overlap(valid, *time)))
}

fn overlap(one: TimeRange, two: TimeRange) -> bool {
    let begins_before = |one: TimeRange, two: TimeRange| match (one.start, two.end) {
        (Some(start), Some(end)) => start < end,
        _ => true,
    };
    begins_before(one, two) && begins_before(two, one)
}

/// Each claim once, with the turns that state it.
fn said(question: &Question<'_>, asking: &Asking, found: Vec<&Stated<'_>>) -> Vec<Statement> {
    let mut statements: Vec<Statement> = Vec::new();
    let mut places: HashMap<(&Claim, bool), usize> = HashMap::new();
    for fact in found {
        let source = source(fact);
        let claim = (&fact.draft.claim, fact.draft.is_negated());
        let place = *places.entry(claim).or_insert(statements.len());
        match statements.get_mut(place) {
            Some(statement) if statement.sources.len() < SOURCES => statement.sources.push(source),
            Some(_) => {}
            None => statements.push(Statement {
                text: match asking.is_of_the_past() {
                    true => format!("{} ({})", fact.draft.text, span(question, fact)),
                    false => fact.draft.text.clone(),
                },
                sources: vec![source],
            }),
        }
    }
    statements
}

fn span(question: &Question<'_>, fact: &Stated<'_>) -> String {
    let since = day(question, fact.since);
    match fact.derivation.valid.end {
        Some(end) => format!("{since} to {}", day(question, end)),
        None => format!("since {since}"),
    }
}

fn source(fact: &Stated<'_>) -> Source {
    let words = match fact.derivation.origin {
        Origin::Extracted(_) => fact.draft.evidence.clone(),
        // The turn says something else.
        Origin::Corrected => 0..0,
    };
    Source {
        place: fact.place,
        words,
    }
}
