//! What may enter a block: the turns that a search found, and those around them at a discount.

use std::collections::HashSet;

use memfleet_agents::facts::covers;
use memfleet_assembly::Outdated;
use memfleet_domain::derivation::{Derivation, Origin};
use memfleet_domain::ids::{DerivationId, SpaceId, TurnId};
use memfleet_domain::turn::Turn;
use memfleet_language::Analyzer;
use memfleet_ports::retriever::{Hit, SignalScore};

/// What a neighbour ranks below its hit, as a share of the distance between the best hit and the last.
const NEIGHBOUR_DISCOUNT: f32 = 0.5;
/// The least discount: a neighbour never comes before its hit.
const LEAST_DISCOUNT: f32 = 0.001;

/// A turn that may enter the block.
pub struct Eligible<'a> {
    /// Where it comes from.
    pub space: &'a SpaceId,
    /// The turn.
    pub turn: &'a Turn,
    /// What it ranks by.
    pub score: f32,
    /// The calibrated probability that it bears on the query; none for a neighbour.
    pub relevance: Option<f32>,
    /// Why it was found, when that was asked for.
    pub signals: &'a [SignalScore],
    /// Byte range of its best passage; empty for a neighbour.
    pub passage: (u32, u32),
    /// What became of what it says.
    pub outdated: Option<Outdated<'a>>,
    /// The turns that the correction comes from, where that is what became of it.
    pub corrected_from: &'a [TurnId],
    /// The turn that says how it is now.
    pub successor: Option<TurnId>,
}

/// Mark of a hit: the fate of its fact that the query asks for. None where the turn says more than
/// the fact, unless a caller corrected it: a reader takes the mark for one of the whole turn.
fn outdated<'h>(hit: &'h Hit, analyzer: &Analyzer) -> Option<Outdated<'h>> {
    let fact = hit.outdated_fact()?;
    let is_all_said = |draft| {
        let text = hit.turn.accepted.content.searchable_text();
        covers(draft, &text, analyzer)
    };
    if fact.origin != Origin::Corrected && !fact.fact().is_some_and(is_all_said) {
        return None;
    }
    match (fact.valid.end, fact.fact()) {
        _ if fact.is_withdrawn() => Some(Outdated::Wrong),
        (None, Some(draft)) if fact.origin == Origin::Corrected => {
            Some(Outdated::Corrected(&draft.text))
        }
        (end, _) => end.map(Outdated::Since),
    }
}

/// The turns of the fact whose correction a mark shows.
fn corrected_from<'h>(hit: &'h Hit, mark: Option<Outdated<'_>>) -> &'h [TurnId] {
    match (mark, hit.outdated_fact()) {
        (Some(Outdated::Corrected(_)), Some(fact)) => &fact.turns,
        _ => &[],
    }
}

/// Turn of a hit that says how it is now in the place of a marked one.
fn successor(hit: &Hit, hits: &[Hit]) -> Option<TurnId> {
    let mut next = hit.outdated_fact()?.succeeded_by;
    let mut found = None;
    // As many steps as there are hits: versions of the world that lead in a circle end, too.
    for _ in hits {
        let Some((turn, fact)) = next.and_then(|id| stated(hits, &hit.space, id)) else {
            break;
        };
        (found, next) = (Some(turn), fact.succeeded_by);
    }
    found.filter(|turn| *turn != hit.turn.accepted.id)
}

/// A fact that a hit of a space states, and the turn.
fn stated<'h>(
    hits: &'h [Hit],
    space: &SpaceId,
    id: DerivationId,
) -> Option<(TurnId, &'h Derivation)> {
    let here = hits.iter().filter(|hit| hit.space == *space);
    here.flat_map(|hit| hit.facts.iter().map(|fact| (hit.turn.accepted.id, fact)))
        .find(|(_, fact)| fact.id == id)
}

/// The hits, best first, then the neighbours of those that are relevant enough; each turn once.
pub fn eligible<'h>(hits: &'h [Hit], threshold: f32, analyzer: &Analyzer) -> Vec<Eligible<'h>> {
    let mut all = hits
        .iter()
        .map(|hit| {
            let outdated = outdated(hit, analyzer);
            Eligible {
                space: &hit.space,
                turn: &hit.turn,
                score: hit.score,
                relevance: hit.relevance,
                signals: &hit.signals,
                passage: hit.passage,
                outdated,
                corrected_from: corrected_from(hit, outdated),
                successor: successor(hit, hits),
            }
        })
        .collect::<Vec<_>>();
    let mut known = all
        .iter()
        .map(|hit| (hit.space, hit.turn.accepted.id))
        .collect::<HashSet<_>>();
    let spread = match (hits.first(), hits.last()) {
        (Some(best), Some(last)) => best.score - last.score,
        _ => 0.0,
    };
    let discount = (NEIGHBOUR_DISCOUNT * spread).max(LEAST_DISCOUNT);
    // The best hits come first, so a turn beside several of them gets the best of their scores.
    let passes = |hit: &&Hit| hit.relevance.is_none_or(|relevance| relevance >= threshold);
    for hit in hits.iter().filter(passes) {
        for turn in &hit.neighbours {
            if known.insert((&hit.space, turn.accepted.id)) {
                all.push(Eligible {
                    space: &hit.space,
                    turn,
                    score: hit.score - discount,
                    relevance: None,
                    signals: &[],
                    passage: (0, 0),
                    outdated: None,
                    corrected_from: &[],
                    successor: None,
                });
            }
        }
    }
    all
}
