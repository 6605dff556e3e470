//! Fields of derivations and conflicts, and the rules of their store that need no database.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::BuildHasher;

use memfleet_domain::derivation::{Body, Derivation, Kind, Status};
use memfleet_domain::ids::DerivationId;
use memfleet_ports::feed::{Change, IndexedDerivation, IndexedPassage};
use memfleet_ports::knowledge::{Question, Revision};

use crate::damage::{Result, damaged};

/// The number of a kind in its column.
pub fn from_kind(kind: Kind) -> i64 {
    match kind {
        Kind::Fact => 0,
        Kind::Episode => 1,
        Kind::Fragment => 2,
        Kind::Narrative => 3,
        Kind::Identity => 4,
    }
}

/// The number of a status in its column.
pub fn from_status(status: Status) -> i64 {
    match status {
        Status::Found => 0,
        Status::Settled => 1,
        Status::Open => 2,
        Status::Dismissed => 3,
        Status::Possible => 4,
    }
}

/// The status of a column.
pub fn to_status(number: i64) -> Result<Status> {
    [
        Status::Found,
        Status::Settled,
        Status::Open,
        Status::Dismissed,
        Status::Possible,
    ]
    .into_iter()
    .find(|status| from_status(*status) == number)
    .ok_or_else(|| damaged(format!("{number} is no status of a conflict")))
}

/// The numbers of these statuses; of all where none is named.
pub fn status_numbers(statuses: &[Status]) -> Vec<i64> {
    if statuses.is_empty() {
        return (0..=from_status(Status::Possible)).collect();
    }
    statuses.iter().map(|status| from_status(*status)).collect()
}

/// What a derivation is looked up by: a fact by subject and attribute of its claim, a fragment by its narrative.
pub fn lookup_keys(derivation: &Derivation) -> (Option<Cow<'_, str>>, Option<&str>) {
    match &derivation.body {
        Body::Fact(fact) => (
            Some(Cow::Borrowed(&fact.claim.subject)),
            Some(&fact.claim.attribute),
        ),
        Body::Fragment(fragment) => (Some(Cow::Owned(fragment.narrative.to_string())), None),
        Body::Episode(_) | Body::Narrative(_) | Body::Identity(_) => (None, None),
    }
}

/// The first of these keys and the kind that a question is about.
pub fn asked_keys(question: &Question) -> (Option<i64>, Option<Cow<'_, str>>) {
    match question.narrative {
        Some(narrative) => (
            Some(from_kind(Kind::Fragment)),
            Some(Cow::Owned(narrative.to_string())),
        ),
        None => (
            question.kind.map(from_kind),
            question.subject.as_deref().map(Cow::Borrowed),
        ),
    }
}

/// Whether revisions rest on what is there: each is the version after the current one, and the first has something to be found by.
pub fn rest_on<S: BuildHasher>(
    revisions: &[Revision],
    current: &HashMap<DerivationId, u32, S>,
) -> bool {
    revisions.iter().all(|revision| {
        let before = current.get(&revision.derivation.id).copied().unwrap_or(0);
        revision.derivation.version == before + 1 && (before > 0 || revision.passage.is_some())
    })
}

/// The keys of what a fact relates.
fn related(derivation: &Derivation) -> Vec<String> {
    let claim = derivation.fact().map(|fact| &fact.claim);
    let keys = claim.into_iter().flat_map(|it| [&it.subject, &it.value]);
    keys.filter(|key| !key.is_empty()).cloned().collect()
}

/// What an index is told of a derivation whose version of now is found by the passage of this number.
pub fn derived_change(
    derivation: Derivation,
    number: u32,
    passage: Option<IndexedPassage>,
) -> Change {
    match passage {
        Some(passage) if !derivation.is_withdrawn() => {
            Change::Derived(Box::new(IndexedDerivation {
                id: derivation.id,
                kind: derivation.kind(),
                entities: related(&derivation),
                turns: derivation.turns,
                number,
                passage,
            }))
        }
        _ => Change::Withdrawn(derivation.id),
    }
}
