//! What is so now stands before what was so once.

use std::collections::{HashMap, HashSet};

use memfleet_agents::asking::Asking;
use memfleet_agents::currency::{Said, newer};
use memfleet_domain::derivation::{Derivation, Origin};
use memfleet_domain::ids::{SpaceId, TurnId};
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::{Role, Turn};
use memfleet_ports::retriever::Hit;

use super::Successors;

/// Marks the hits that a later one of the same speaker tells otherwise than, but for those of which it is known until when they hold. What a caller
/// corrected is not told.
pub(super) fn mark_newer(hits: &mut [Hit], space: &SpaceId, asking: &Asking, now: Timestamp) {
    let is_said = |hit: &Hit| {
        let is_users = hit.space == *space && hit.turn.accepted.role == Role::User;
        is_users && !is_corrected(hit, asking)
    };
    let places: Vec<usize> = (0..hits.len()).filter(|&at| is_said(&hits[at])).collect();
    let texts: Vec<String> = places
        .iter()
        .map(|&at| hits[at].turn.accepted.content.searchable_text())
        .collect();
    let said = places.iter().zip(&texts).map(|(&at, text)| {
        let turn = &hits[at].turn;
        Said {
            speaker: turn.accepted.speaker.as_str(),
            text,
            at: (turn.accepted.effective_time(), turn.position.into()),
        }
    });
    let newer = newer(asking, &said.collect::<Vec<_>>());
    for (&at, newer) in places.iter().zip(newer) {
        let newer = newer.filter(|_| !holds(&hits[at], asking, now));
        hits[at].newer = newer.map(|newer| hits[places[newer]].turn.accepted.id);
    }
}

/// Whether a caller corrected a fact of the hit that the query asks for.
fn is_corrected(hit: &Hit, asking: &Asking) -> bool {
    let speaker = hit.turn.accepted.speaker.as_str();
    hit.facts.iter().any(|fact| {
        let draft = fact.fact().filter(|_| fact.origin == Origin::Corrected);
        draft.is_some_and(|draft| asking.is_for(draft, speaker))
    })
}

/// Whether a fact of the hit that the query asks for holds, and is known to have ended later.
fn holds(hit: &Hit, asking: &Asking, now: Timestamp) -> bool {
    let speaker = hit.turn.accepted.speaker.as_str();
    let is_asked = |fact: &Derivation| {
        fact.fact()
            .is_some_and(|draft| asking.is_for(draft, speaker))
    };
    let mut facts = hit.facts.iter();
    facts.any(|fact| fact.valid.end.is_some() && fact.valid.contains(now) && is_asked(fact))
}

/// The turns that tell how things are now and were not found.
pub(super) fn missing(hits: &[Hit], space: &SpaceId, successors: &Successors) -> Vec<TurnId> {
    let have: HashSet<TurnId> = hits
        .iter()
        .filter(|hit| hit.space == *space)
        .map(|hit| hit.turn.accepted.id)
        .collect();
    let wanted = successors.values().map(|fact| fact.turns[0]);
    let missing: HashSet<TurnId> = wanted.filter(|turn| !have.contains(turn)).collect();
    missing.into_iter().collect()
}

/// The hits with each turn that tells how it is now right before the first that tells how it was.
pub(super) fn in_order(
    hits: Vec<Hit>,
    space: &SpaceId,
    successors: &Successors,
    there: Vec<Turn>,
    mut facts: HashMap<TurnId, Vec<Derivation>>,
) -> Vec<Hit> {
    let mut hits: Vec<Option<Hit>> = hits.into_iter().map(Some).collect();
    let mut there: HashMap<TurnId, Turn> = there
        .into_iter()
        .map(|turn| (turn.accepted.id, turn))
        .collect();
    let mut ordered = Vec::with_capacity(hits.len() + there.len());
    for at in 0..hits.len() {
        let Some(hit) = hits[at].take() else {
            continue;
        };
        let successor = || Some(successors.get(&hit.outdated?)?.turns[0]);
        let now = hit.newer.or_else(successor);
        if let Some(turn) = now.filter(|_| hit.space == *space) {
            let is_it = |other: &Option<Hit>| {
                other
                    .as_ref()
                    .is_some_and(|other| other.space == *space && other.turn.accepted.id == turn)
            };
            let later = hits.iter().position(is_it);
            let moved = match later {
                Some(later) => hits[later].take(),
                None => there
                    .remove(&turn)
                    .map(|turn| brought(&hit, turn, &mut facts)),
            };
            ordered.extend(moved.map(|moved| Hit {
                score: moved.score.max(hit.score),
                // It says how it is now what the other one was found for.
                relevance: most(moved.relevance, hit.relevance),
                ..moved
            }));
        }
        ordered.push(hit);
    }
    ordered
}

/// The higher of two relevances, as far as they are known.
fn most(one: Option<f32>, other: Option<f32>) -> Option<f32> {
    one.into_iter().chain(other).reduce(f32::max)
}

/// A turn that was not found, as a hit.
fn brought(hit: &Hit, turn: Turn, facts: &mut HashMap<TurnId, Vec<Derivation>>) -> Hit {
    let facts = facts.remove(&turn.accepted.id).unwrap_or_default();
    Hit {
        space: hit.space.clone(),
        score: hit.score,
        relevance: hit.relevance,
        passage: (0, turn.accepted.content.searchable_text().len() as u32),
        signals: Vec::new(),
        neighbours: Vec::new(),
        outdated: None,
        newer: None,
        facts,
        turn,
    }
}
