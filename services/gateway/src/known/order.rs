//! Order of hits: the turn that took the place of a marked one stands before it.

use std::collections::{HashMap, HashSet};

use memfleet_domain::derivation::Derivation;
use memfleet_domain::ids::{DerivationId, SpaceId, TurnId};
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::Turn;
use memfleet_ports::retriever::Hit;

use super::{Successors, is_so};

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
        let successor = hit.outdated.and_then(|fact| successors.get(&fact));
        if let Some(turn) = successor
            .map(|fact| fact.turns[0])
            .filter(|_| hit.space == *space)
        {
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

/// Pairs of the turns of each of these statements that ended and of the one that holds in its
/// place, as far as both were found.
pub(super) fn ended_with_successors(
    hits: &[Hit],
    space: &SpaceId,
    ended: &HashMap<DerivationId, f32>,
    now: Timestamp,
) -> Vec<(TurnId, TurnId)> {
    let facts = || {
        let here = hits.iter().filter(|hit| hit.space == *space);
        here.flat_map(|hit| &hit.facts)
    };
    let holding = facts().filter(|fact| is_so(fact, now));
    let holding: HashMap<_, _> = holding.map(|fact| (fact.id, fact.turns[0])).collect();
    let ended = facts().filter(|fact| ended.contains_key(&fact.id));
    let by = |fact: &Derivation| holding.get(&fact.succeeded_by?).copied();
    let pairs = ended.filter_map(|fact| Some((fact.turns[0], by(fact)?)));
    pairs.collect()
}

/// Puts the hit of the first turn of each pair right before that of the second, as far as both were
/// found. Of several for one turn the earlier pair comes first.
pub(super) fn put_in_pairs(
    hits: &mut [Hit],
    space: &SpaceId,
    pairs: impl Iterator<Item = (TurnId, TurnId)>,
) {
    let of_hit = |hit: &Hit| (hit.space == *space).then_some(hit.turn.accepted.id);
    let mut turns: Vec<Option<TurnId>> = hits.iter().map(of_hit).collect();
    // Each pair moves one hit at most, so that pairs in a ring come to an end.
    for (first, second) in pairs {
        let place = |turn| turns.iter().position(|it| *it == Some(turn));
        let (Some(first), Some(second)) = (place(first), place(second)) else {
            continue;
        };
        if first <= second {
            continue;
        }
        let (score, relevance) = (hits[second].score, hits[second].relevance);
        let hit = &mut hits[first];
        hit.score = score;
        hit.relevance = most(hit.relevance, relevance);
        hits[second..=first].rotate_right(1);
        turns[second..=first].rotate_right(1);
    }
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
        facts,
        turn,
    }
}
