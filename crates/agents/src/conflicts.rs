//! Checks of a conflict of two facts that a language model names (AMA section 3.3): which of them
//! is the older one, since when it is over, and whether that closes it.

use chrono::TimeDelta;
use memfleet_domain::derivation::{Contradiction, Derivation, Origin};
use memfleet_domain::fact::{Draft, Stance};
use memfleet_domain::ids::DerivationId;
use memfleet_domain::time::Timestamp;

use crate::facts::is_state;

/// Judges of earlier versions whose conflicts are dismissed: `rules-1` guessed about attributes,
/// `rules-2` compared facts that are no longer derived, `reader-3` ended statements of other
/// matters.
pub const WITHDRAWN_JUDGES: [&str; 3] = ["rules-1", "rules-2", "reader-3"];

/// Longest time between an event and its telling by which it tells how things are now.
const LATELY: TimeDelta = TimeDelta::days(92);

/// Below this an extraction is too doubtful to close anything.
const DOUBTFUL: f32 = 0.55;

/// Two facts that cannot both hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// The one that was true first.
    pub older: DerivationId,
    /// The one that speaks against it.
    pub newer: DerivationId,
    /// Why.
    pub contradiction: Contradiction,
    /// From when the older one does not hold; absent: it never did.
    pub ends: Option<Timestamp>,
}

/// Verdict of a language model on two facts, as far as it is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judged {
    /// How they contradict each other.
    pub verdict: Verdict,
    /// True where that closes the older one; otherwise it is for a person to decide.
    pub closes: bool,
}

/// The verdict where a language model says that two facts exclude each other, the older one having
/// been wrong from the start or not. It is not taken of facts that one turn states, nor of what
/// says the same. That the older one was wrong takes a newer one that takes something back, else it
/// is a change. Facts of two attributes may both hold, whatever is said of them: they close
/// nothing.
pub fn judged(one: &Derivation, other: &Derivation, corrects: bool) -> Option<Judged> {
    let Pair { older, newer } = comparable(one, other)?;
    let (before, after) = (older.fact()?, newer.fact()?);
    let is_turned = before.is_negated() != after.is_negated();
    let has_same_value = is_same(&before.claim.value, &after.claim.value);
    let has_same_attribute = before.claim.attribute == after.claim.attribute;
    let is_of_one_turn = older.turns.first() == newer.turns.first();
    if is_of_one_turn || has_same_attribute && has_same_value && !is_turned {
        return None;
    }
    let kind = if is_turned {
        Contradiction::Negation
    } else {
        Contradiction::Functional
    };
    let corrects = corrects && after.stance == Stance::Corrects;
    let verdict = verdict(older, newer, kind, corrects);
    // A change that leaves the older one no time would say that it never held.
    let leaves_time = corrects || verdict.ends.is_some();
    let is_one_matter = has_same_attribute || is_turned && has_same_value;
    Some(Judged {
        verdict,
        closes: leaves_time && is_one_matter,
    })
}

fn verdict(
    older: &Derivation,
    newer: &Derivation,
    contradiction: Contradiction,
    corrects: bool,
) -> Verdict {
    Verdict {
        older: older.id,
        newer: newer.id,
        contradiction: if corrects {
            Contradiction::Correction
        } else {
            contradiction
        },
        // A state that has held since before the older one was told leaves it no time.
        ends: [newer.valid.start, told_lately(newer, older)]
            .into_iter()
            .flatten()
            .find(|start| !corrects && Some(*start) > older.valid.start),
    }
}

/// When the newer one was told, where it happened lately but, as it is dated, before the older one
/// was told ("I moved last week").
fn told_lately(newer: &Derivation, older: &Derivation) -> Option<Timestamp> {
    let told = newer.fact().filter(|fact| !is_of_state(fact))?;
    told.said_at.filter(|_| is_told_later(newer, older))
}

/// Two facts in the order in which they took each other's place.
struct Pair<'d> {
    older: &'d Derivation,
    newer: &'d Derivation,
}

/// Two facts with clauses that are no statements in their own words, of one subject, of which the
/// older one is not over when the newer one begins, and the newer one is sure enough.
fn comparable<'d>(one: &'d Derivation, other: &'d Derivation) -> Option<Pair<'d>> {
    let (older, newer) = in_order(one, other);
    let (before, after) = (older.fact()?, newer.fact()?);
    let doubtful = newer.origin != Origin::Corrected && after.confidence < DOUBTFUL;
    if before.is_statement()
        || after.is_statement()
        || before.claim.subject != after.claim.subject
        || older.is_withdrawn()
        || newer.is_withdrawn()
        || doubtful
    {
        return None;
    }
    let start = newer.valid.start.max(older.valid.start)?;
    // A fact that is told of the past only ("I used to live in Oslo") does not say when it held: it
    // contradicts nothing.
    let told_as_past = older.valid.start.is_none() && older.valid.end.is_some();
    let was_over = !older.valid.contains(start);
    let is_past = newer.valid.end.is_some();
    (!told_as_past && !was_over && !is_past).then_some(Pair { older, newer })
}

/// By when they began to hold, then by when they were known; but of what is only known to hold when
/// it was told, what is told later takes the place, whenever that began: "I live in Rome", and a
/// day later "I have lived in Oslo since May", or "I moved to Oslo last week".
fn in_order<'d>(one: &'d Derivation, other: &'d Derivation) -> (&'d Derivation, &'d Derivation) {
    let place = |derivation: &Derivation| {
        (
            derivation.valid.start,
            derivation.known.start,
            derivation.turns.first().copied(),
        )
    };
    let (first, last) = if place(one) <= place(other) {
        (one, other)
    } else {
        (other, one)
    };
    if is_told_later(first, last) {
        (last, first)
    } else {
        (first, last)
    }
}

/// True where the first has a date, is a state or happened lately, and was told after the last, of
/// which only its telling is known.
fn is_told_later(first: &Derivation, last: &Derivation) -> bool {
    let (Some(dated), Some(told)) = (first.fact(), last.fact()) else {
        return false;
    };
    let is_extracted = [first, last].map(|fact| fact.origin != Origin::Corrected);
    let is_undated = told.valid.start.is_none() || told.valid.start == told.said_at;
    dated.valid.start.is_some()
        && is_undated
        && dated.said_at > told.said_at
        && told.said_at.is_some()
        && (is_of_state(dated) || happened_lately(dated))
        && is_extracted == [true, true]
}

fn is_of_state(fact: &Draft) -> bool {
    fact.predicate().split(' ').next().is_some_and(is_state)
}

/// True for a fact that began shortly before it was told.
fn happened_lately(fact: &Draft) -> bool {
    let told = fact.said_at.zip(fact.valid.start);
    told.is_some_and(|(at, start)| at - start < LATELY)
}

/// True for two values that name the same: one may say more than the other ("lisbon", "lisbon
/// portugal").
fn is_same(one: &str, other: &str) -> bool {
    if one.is_empty() || other.is_empty() {
        return false;
    }
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let (one, other) = (words(one), words(other));
    let within = |few: &[String], many: &[String]| few.iter().all(|word| many.contains(word));
    within(&one, &other) || within(&other, &one)
}
