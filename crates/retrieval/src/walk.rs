//! The graph arm (Amory section 3.3): personalised PageRank over the entities that facts relate and the turns that state these facts, from the
//! entities that the query names. It reaches turns that share nothing with the query but what they are about.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use memfleet_domain::ids::TurnId;

use crate::index::Derivations;
use crate::lexical::inverse_frequency;
use crate::plan::Plan;
use crate::searched::Searched;

/// Share of the walkers that begin anew at each step.
const RESTART: f32 = 0.3;
/// Steps from entities to turns: paths of up to three triplets.
const STEPS: usize = 3;
/// An entity of more facts is what everything is about: nobody walks on from it.
const MOST_FACTS: usize = 1_000;
/// Facts that a step looks at, at most, from the entities with the most walkers on.
const MOST_STEPS: usize = 5_000;
/// What a turn has that nobody reaches, so that its logarithm is a number.
const LEAST: f32 = 1e-6;

/// How many of the walkers end at each turn.
#[derive(Debug, Default)]
pub(crate) struct Walk(HashMap<(usize, TurnId), f32>);

impl Walk {
    /// Walks from what the query names. Where it names no entity nobody sets out.
    pub(crate) fn of(spaces: &[Searched<'_>], plan: &Plan) -> Self {
        let graphs: Vec<Graph<'_>> = spaces.iter().map(Graph::new).collect();
        let keys = plan.naming.keys();
        let starts = graphs.iter().map(|graph| graph.starts(&keys));
        let starts: Vec<Walkers> = starts.collect();
        let all: f32 = starts.iter().flat_map(BTreeMap::values).sum();
        let mut ends = HashMap::new();
        for (space, (graph, starts)) in graphs.iter().zip(starts).enumerate() {
            let starts = starts.into_iter().map(|(at, weight)| (at, weight / all));
            let reached = graph.walk(&starts.collect());
            ends.extend(
                reached
                    .into_iter()
                    .map(|(turn, share)| ((space, turn), share)),
            );
        }
        Self(ends)
    }

    /// The logarithm of a turn's share; NaN where nobody set out.
    pub(crate) fn value(&self, space: usize, turn: TurnId) -> f32 {
        if self.0.is_empty() {
            return f32::NAN;
        }
        let share = self.0.get(&(space, turn)).copied().unwrap_or_default();
        (LEAST + share).ln()
    }

    /// The turns that most walkers reach, by space.
    pub(crate) fn best(&self, most: usize) -> Vec<(usize, TurnId)> {
        let mut reached: Vec<_> = self.0.iter().map(|(turn, share)| (*share, *turn)).collect();
        reached.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        reached.truncate(most);
        reached.into_iter().map(|(_, turn)| turn).collect()
    }
}

/// Walkers by entity, in an order that makes sums come out alike.
type Walkers = BTreeMap<u32, f32>;

/// The graph of one space, as far as its turns may be found.
struct Graph<'a> {
    searched: &'a Searched<'a>,
    facts: &'a Derivations,
    turns: f32,
}

impl<'a> Graph<'a> {
    fn new(searched: &'a Searched<'a>) -> Self {
        Self {
            searched,
            facts: searched.index.facts(),
            turns: searched.index.turns() as f32,
        }
    }

    /// How much an entity says: its inverse frequency among the turns; nothing where all is about it.
    fn weight(&self, entity: u32) -> f32 {
        match self.facts.relating(entity).len() {
            facts if facts > MOST_FACTS => 0.0,
            facts => inverse_frequency(self.turns.max(facts as f32), facts as f32),
        }
    }

    /// The entities that the query names.
    fn starts(&self, keys: &BTreeSet<String>) -> Walkers {
        let named = keys.iter().filter_map(|key| self.facts.entity(key));
        let weighed = named.map(|entity| (entity, self.weight(entity)));
        weighed.filter(|(_, weight)| *weight > 0.0).collect()
    }

    fn walk(&self, starts: &Walkers) -> BTreeMap<TurnId, f32> {
        let mut at = starts.clone();
        let mut turns = BTreeMap::new();
        for step in 0..STEPS {
            turns = self.to_turns(&at);
            if step + 1 < STEPS {
                at = self.to_entities(&turns);
                for (&entity, share) in starts {
                    *at.entry(entity).or_default() += RESTART * share;
                }
            }
        }
        turns
    }

    /// Each walker goes to one of the turns that state something of its entity.
    fn to_turns(&self, at: &Walkers) -> BTreeMap<TurnId, f32> {
        let mut by_share: Vec<(f32, u32)> = at.iter().map(|(&it, &share)| (share, it)).collect();
        by_share.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        let (mut turns, mut looked_at) = (BTreeMap::new(), 0);
        for (share, entity) in by_share {
            let facts = self.facts.relating(entity);
            looked_at += facts.len();
            if looked_at > MOST_STEPS {
                break;
            }
            let part = (1.0 - RESTART) * share / facts.len() as f32;
            for turn in facts.filter_map(|fact| self.stating(fact.turns.first()?)) {
                *turns.entry(turn).or_default() += part;
            }
        }
        turns
    }

    /// Each walker goes on to one of the entities that its turn states something of, rather to a rare one.
    fn to_entities(&self, turns: &BTreeMap<TurnId, f32>) -> Walkers {
        let mut at = Walkers::new();
        for (&turn, share) in turns {
            let related = self.facts.of(turn).flat_map(|fact| &fact.entities);
            let related: BTreeMap<u32, f32> = related.map(|&it| (it, self.weight(it))).collect();
            let all: f32 = related.values().sum();
            let reached = related.into_iter().filter(|(_, weight)| *weight > 0.0);
            for (entity, weight) in reached {
                *at.entry(entity).or_default() += (1.0 - RESTART) * share * weight / all;
            }
        }
        at
    }

    /// The turn, where it may be found.
    fn stating(&self, turn: &TurnId) -> Option<TurnId> {
        let entry = self.searched.index.turn_named(*turn)?;
        let eligible = &self.searched.eligible;
        eligible.contains(entry.first_row).then_some(entry.id)
    }
}

#[cfg(test)]
mod tests;
