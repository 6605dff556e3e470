//! The second stage: every signal of every candidate, standardised over the candidates, weighted, summed.

mod survey;
mod traces;

use std::cmp::Ordering;
use std::sync::Arc;

use memfleet_domain::embedding::TokenVectors;
use memfleet_domain::ids::{DerivationId, TurnId};
use memfleet_ports::retriever::{SignalScore, StageRank};
use rayon::prelude::*;

use crate::again::Round;
use crate::candidates::Candidates;
use crate::coherence::Coherence;
use crate::index::TurnEntry;
use crate::plan::Plan;
use crate::relevance::Clues;
use crate::searched::Searched;
use crate::signal::Signal;
use crate::signals::{Evidence, Place};
use crate::standard::Standard;
use crate::weights::Weights;
use survey::Survey;
use traces::Traces;

/// A turn that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    /// Which of the searched spaces.
    pub space: usize,
    /// The turn.
    pub turn: TurnId,
    /// Higher is better; comparable within one answer only.
    pub score: f32,
    /// Byte range of the best passage in the turn's searchable text.
    pub passage: (u32, u32),
    /// What its relevance is told from.
    pub clues: Clues,
    /// The breakdown: contributions sum to the score.
    pub signals: Vec<SignalScore>,
    /// The turn's fact that late interaction finds best, where it has facts and they were read.
    pub fact: Option<DerivationId>,
    /// The episode that it is part of, where episodes count.
    pub episode: Option<DerivationId>,
    /// The sources of the first stage that name it, where the plan is explained.
    pub sources: Vec<StageRank>,
    /// Its ranks among all candidates after late interaction and after the first round, where the
    /// plan is explained.
    pub stages: Vec<StageRank>,
}

/// Ranks the candidates, best first, at most `limit`. `tokens` are the token vectors of [`Candidates::needed`], in its order.
/// Equal scores rank the later turn first.
pub fn rank(
    spaces: &[Searched<'_>],
    plan: &Plan,
    candidates: &Candidates,
    tokens: &[Vec<Option<Arc<TokenVectors>>>],
    weights: &Weights,
    limit: usize,
) -> Vec<Ranked> {
    let of_words = plan.vectors.is_none().then(|| weights.of_words());
    let weights = of_words.as_ref().unwrap_or(weights);
    let evidence = Evidence::new(spaces, plan, weights, candidates, tokens);
    let turns: Vec<Turn<'_>> = Turn::all(spaces, candidates);
    let used = Signal::ALL
        .into_iter()
        .filter(|&signal| weights.of(signal) != 0.0);
    let sessions: usize = spaces.iter().map(|space| space.index.sessions()).sum();
    let route = plan.route(weights);
    let weight = |signal: Signal| {
        let scale = if signal.is_of_session() {
            (sessions as f32 / weights.sessions as f32).min(1.0)
        } else {
            1.0
        };
        scale * weights.routed(signal, &route)
    };
    let columns: Vec<Column> = used
        .collect::<Vec<_>>()
        .into_par_iter()
        .map(|signal| Column::new(signal, weight(signal), &turns, &evidence))
        .collect();
    let sums = |counts: fn(Signal) -> bool| contributions(&columns, turns.len(), counts);
    let alone = sums(|_| true);
    let places: Vec<Place<'_>> = turns.iter().map(Turn::opening).collect();
    // What a turn says by itself: a window reaches over into what was said of another story.
    let own = sums(Signal::is_own);
    let coherence = Coherence::new(&own, &places, &evidence, route.coherence);
    let first = alone.iter().enumerate();
    let first: Vec<f32> = first
        .map(|(at, score)| score + coherence.added(at))
        .collect();
    let recency = |at: usize| {
        let entry = turns[at].entry;
        (entry.effective_time(), entry.order, entry.id)
    };
    let best_first = |a: &(f32, usize), b: &(f32, usize)| -> Ordering {
        b.0.total_cmp(&a.0)
            .then_with(|| recency(b.1).cmp(&recency(a.1)))
    };
    let sorted = |scores: &[f32]| -> Vec<usize> {
        let mut order: Vec<(f32, usize)> = scores.iter().copied().zip(0..).collect();
        order.sort_unstable_by(best_first);
        order.into_iter().map(|(_, at)| at).collect()
    };
    let by_first = sorted(&first);
    let traces = plan.is_explained.then(|| {
        let mut traces = Traces::new(spaces, &turns, candidates, &evidence);
        if plan.vectors.is_some() {
            let late = sums(Signal::is_late_interaction);
            traces.add_stage("late_interaction", &late, &sorted(&late));
        }
        traces.add_stage("first_round", &first, &by_first);
        traces
    });
    let round = Round::new(&first, &by_first, &places, &evidence, weights);
    let again = |(at, score): (usize, &f32)| (score + round.added(at), at);
    let mut order: Vec<(f32, usize)> = first.iter().enumerate().map(again).collect();
    let survey = Survey::new(order.iter().map(|&(score, _)| score), &columns, &evidence);
    if limit < order.len() {
        order.select_nth_unstable_by(limit, best_first);
        order.truncate(limit);
    }
    order.sort_unstable_by(best_first);
    let ranked = |(score, at): (f32, usize)| {
        let turn = &turns[at];
        Ranked {
            space: turn.space,
            turn: turn.entry.id,
            score,
            clues: survey.clues(turn, score),
            passage: turn.passage(spaces, best_row(&columns, turn)),
            signals: columns
                .iter()
                .map(|column| column.explain(at))
                .chain([coherence.explain(at)])
                .chain(round.explain(at))
                .collect(),
            fact: round.fact(at),
            episode: evidence.episode(turn.space, turn.entry.id),
            sources: traces.as_ref().map_or_else(Vec::new, |it| it.sources(at)),
            stages: traces.as_ref().map_or_else(Vec::new, |it| it.stages(at)),
        }
    };
    order.into_iter().map(ranked).collect()
}

/// By turn, the sum of the contributions of the signals that count.
fn contributions(columns: &[Column], turns: usize, counts: fn(Signal) -> bool) -> Vec<f32> {
    let counted = columns.iter().filter(|column| counts(column.signal));
    let counted: Vec<&Column> = counted.collect();
    let sum = |at: usize| counted.iter().map(|column| column.contribution(at)).sum();
    (0..turns).map(sum).collect()
}

/// A candidate and where its passages stand among all.
struct Turn<'a> {
    space: usize,
    entry: &'a TurnEntry,
    first: usize,
}

impl<'a> Turn<'a> {
    fn all(spaces: &[Searched<'a>], candidates: &Candidates) -> Vec<Self> {
        let mut first = 0;
        let place = |&(space, slot): &(usize, u32)| {
            let entry = spaces[space].index.turn(slot);
            let turn = Turn {
                space,
                entry,
                first,
            };
            first += entry.rows as usize;
            turn
        };
        candidates.turns.iter().map(place).collect()
    }

    fn places(&self) -> impl Iterator<Item = Place<'a>> {
        let (space, turn) = (self.space, self.entry);
        turn.rows().map(move |row| Place { space, turn, row })
    }

    /// Its first passage.
    fn opening(&self) -> Place<'a> {
        Place {
            space: self.space,
            turn: self.entry,
            row: self.entry.first_row,
        }
    }

    /// Where its passages stand.
    fn range(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.entry.rows as usize
    }

    /// Byte range of a passage in the turn's text: passages cover it without gaps.
    fn passage(&self, spaces: &[Searched<'_>], at: usize) -> (u32, u32) {
        let length = |row| spaces[self.space].index.passages().text_bytes(row);
        let start = self.entry.rows().take(at - self.first).map(length).sum();
        (
            start,
            start + length(self.entry.first_row + (at - self.first) as u32),
        )
    }
}

/// One signal of all candidates.
struct Column {
    signal: Signal,
    weight: f32,
    /// By passage.
    passages: Vec<f32>,
    /// By turn: the highest of its passages, standardised where the signal is.
    turns: Vec<f32>,
    /// Of `passages`, where the signal is standardised.
    standard: Option<Standard>,
}

impl Column {
    fn new(signal: Signal, weight: f32, turns: &[Turn<'_>], evidence: &Evidence<'_>) -> Self {
        let passages: Vec<f32> = turns
            .iter()
            .flat_map(Turn::places)
            .map(|place| evidence.value(signal, place))
            .collect();
        // The sign of the weight says which end of the scale is the good one.
        let best = |turn: &Turn<'_>| {
            let values = passages[turn.range()].iter().copied();
            if weight < 0.0 {
                values.fold(f32::NAN, f32::min)
            } else {
                values.fold(f32::NAN, f32::max)
            }
        };
        let mut values: Vec<f32> = turns.iter().map(best).collect();
        let typical = signal.typical_deviation();
        let of = |values: &[f32]| Standard::of(values.iter().copied()).shrunk(typical);
        if signal.is_standardised() {
            let standard = of(&values);
            values
                .iter_mut()
                .for_each(|value| *value = standard.score(*value));
        }
        Self {
            signal,
            weight,
            turns: values,
            standard: signal.is_standardised().then(|| of(&passages)),
            passages,
        }
    }

    fn contribution(&self, turn: usize) -> f32 {
        self.weight * self.turns[turn]
    }

    fn explain(&self, turn: usize) -> SignalScore {
        let contribution = self.contribution(turn);
        SignalScore {
            signal: self.signal.name().into(),
            value: self.turns[turn],
            contribution,
        }
    }

    /// What a passage adds among all passages; among turns, a single one would leave nothing to compare.
    fn passage_contribution(&self, at: usize) -> f32 {
        self.standard.map_or(0.0, |standard| {
            self.weight * standard.score(self.passages[at])
        })
    }
}

/// The passage of a turn that matches best, the first of equals.
fn best_row(columns: &[Column], turn: &Turn<'_>) -> usize {
    let score = |at: usize| -> f32 {
        columns
            .iter()
            .map(|column| column.passage_contribution(at))
            .sum()
    };
    let better = |best: usize, at: usize| if score(at) > score(best) { at } else { best };
    turn.range().reduce(better).unwrap_or(turn.first)
}

#[cfg(test)]
mod tests;
