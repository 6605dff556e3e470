//! The second round (AMA section 3.3, Retry): what the best turns of the first round are like, and the facts that turns state,
//! say what more belongs to the answer. Questions whose answer is spread over many turns need it: their wording finds a few of
//! these, and those find the others. The best turns of the first round keep their places, so that nothing found is lost.

use memfleet_domain::ids::DerivationId;
use memfleet_ports::retriever::SignalScore;

use crate::dot::Query;
use crate::signal::Signal;
use crate::signals::{Evidence, Place};
use crate::standard::Standard;
use crate::weights::{Again, Weights};

/// What the second round adds to the scores of the first.
pub(crate) struct Round {
    again: Again,
    /// By turn, z-scored.
    likeness: Vec<f32>,
    facts: Vec<f32>,
    best_facts: Vec<Option<DerivationId>>,
    /// By turn: what keeps those in front that stay there.
    kept: Vec<f32>,
}

impl Round {
    /// Looks again. `first` are the scores of the first round, `places` the turns in the same order, `order` the best first.
    pub(crate) fn new(
        first: &[f32],
        order: &[usize],
        places: &[Place<'_>],
        evidence: &Evidence<'_>,
        weights: &Weights,
    ) -> Self {
        let again = weights.again;
        let best = |at: &usize| best_fact(evidence, places[*at]);
        let facts: Vec<_> = (0..places.len())
            .map(|at| if again.facts == 0.0 { None } else { best(&at) })
            .collect();
        let values = facts
            .iter()
            .map(|fact| fact.map_or(f32::NAN, |(_, value)| value));
        let seeds = &order[..again.seeds.min(order.len())];
        let mut round = Self {
            again,
            likeness: standardised(likeness(first, places, evidence, seeds), 0.0),
            facts: standardised(values.collect(), Signal::Maxsim.typical_deviation()),
            best_facts: facts.iter().map(|fact| fact.map(|(id, _)| id)).collect(),
            kept: vec![0.0; first.len()],
        };
        round.keep(first, order);
        round
    }

    /// What it adds to a turn's score.
    pub(crate) fn added(&self, at: usize) -> f32 {
        self.likeness[at] * self.again.likeness + self.facts[at] * self.again.facts + self.kept[at]
    }

    /// The same in its parts.
    pub(crate) fn explain(&self, at: usize) -> impl Iterator<Item = SignalScore> {
        let part = |signal: &'static str, value: f32, weight: f32| SignalScore {
            signal: signal.into(),
            value,
            contribution: weight * value,
        };
        [
            part("again_likeness", self.likeness[at], self.again.likeness),
            part("again_fact", self.facts[at], self.again.facts),
            part("again_kept", self.kept[at], 1.0),
        ]
        .into_iter()
    }

    /// The turn's fact that is found best.
    pub(crate) fn fact(&self, at: usize) -> Option<DerivationId> {
        self.best_facts[at]
    }

    /// The best turns of the first round keep their order before all others, and those within reach stand before the rest, by as
    /// little as that takes.
    fn keep(&mut self, first: &[f32], order: &[usize]) {
        let reach = self.again.reach.max(self.again.kept);
        let within = &order[..reach.min(order.len())];
        let mut is_within = vec![false; first.len()];
        within.iter().for_each(|&at| is_within[at] = true);
        let scores: Vec<f32> = (0..first.len())
            .map(|at| first[at] + self.added(at))
            .collect();
        let lowest = within.iter().map(|&at| scores[at]);
        let lowest = lowest.fold(f32::INFINITY, f32::min);
        let beyond = || (0..first.len()).filter(|&at| !is_within[at]);
        let highest = beyond().map(|at| scores[at]);
        let highest = highest.fold(f32::NEG_INFINITY, f32::max);
        if highest >= lowest {
            beyond().for_each(|at| self.kept[at] = lowest - highest - step(lowest, highest));
        }
        let (front, others) = within.split_at(self.again.kept.min(within.len()));
        let others = others.iter().map(|&at| scores[at]);
        let mut floor = others.fold(f32::NEG_INFINITY, f32::max);
        for &at in front.iter().rev() {
            if scores[at] <= floor {
                self.kept[at] = floor - scores[at] + step(floor, scores[at]);
            }
            floor = scores[at] + self.kept[at];
        }
    }
}

/// A difference that sums of two such numbers do not lose.
fn step(one: f32, other: f32) -> f32 {
    16.0 * f32::EPSILON * one.abs().max(other.abs()).max(1.0)
}

/// How like each turn is to the best of the first round, each by how far it stands out.
fn likeness(
    first: &[f32],
    places: &[Place<'_>],
    evidence: &Evidence<'_>,
    seeds: &[usize],
) -> Vec<f32> {
    let standard = Standard::of(first.iter().copied());
    let seeds: Vec<(f32, Query)> = seeds
        .iter()
        .filter_map(|&at| {
            let vector = evidence.sentence(places[at])?;
            Some((standard.score(first[at]).max(0.0), Query::new(vector)))
        })
        .collect();
    // With an assistant, what is most like a turn says it once more; there its episode tells what belongs to it.
    let is_open = |place: &Place<'_>| {
        !seeds.is_empty() && evidence.episode(place.space, place.turn.id).is_none()
    };
    let of = |place: &Place<'_>| match evidence.sentence(*place) {
        Some(vector) if is_open(place) => seeds
            .iter()
            .filter(|(_, seed)| seed.len() == vector.len())
            .map(|(weight, seed)| weight * seed.dot(vector) as f32)
            .sum(),
        _ => f32::NAN,
    };
    places.iter().map(of).collect()
}

fn best_fact(evidence: &Evidence<'_>, place: Place<'_>) -> Option<(DerivationId, f32)> {
    let facts = evidence.facts(place.space, place.turn.id);
    facts
        .filter(|(_, value)| value.is_finite())
        .max_by(|a, b| a.1.total_cmp(&b.1).then_with(|| b.0.cmp(&a.0)))
}

fn standardised(values: Vec<f32>, typical_deviation: f32) -> Vec<f32> {
    let standard = Standard::of(values.iter().copied()).shrunk(typical_deviation);
    values
        .into_iter()
        .map(|value| standard.score(value))
        .collect()
}

#[cfg(test)]
mod tests;
