//! Rankings of two models as one: a balanced search compares vectors of two models, each in a
//! ranking of its own, and takes a weighted mean of their scores (docs/retrieval.md, Quality).

use std::collections::{HashMap, HashSet};

use memfleet_domain::ids::TurnId;
use memfleet_ports::retriever::{SignalScore, StageRank};

use crate::rank::Ranked;
use crate::relevance::Clues;

/// The best turns of each ranking, whose scores are compared: a turn behind them has the score of
/// the last of them. It is the same for every number of hits, so that these are the same.
pub const FUSED_TURNS: usize = 100;

/// The second model's part of the mean. A half is worth less: the first model is the one that
/// reads the space best (docs/benchmarks.md, Languages).
const SECOND_PART: f32 = 1.0 / 3.0;

/// Name of the signal and of the stage that show the score by the second model.
const SECOND_MODEL: &str = "second_model";

/// Name and version of the fusion, as a part of a scorer's name. It changes with
/// [`FUSED_TURNS`] and with the part of the second model.
pub const FUSION: &str = "fused-1";

/// A turn: which of the searched spaces it is in, and its id.
type TurnKey = (usize, TurnId);

/// A ranked turn with its relevance, where that is known.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoredTurn {
    /// The turn and its score.
    pub ranked: Ranked,
    /// The probability that it bears on the query.
    pub relevance: Option<f32>,
}

impl ScoredTurn {
    fn key(&self) -> TurnKey {
        (self.ranked.space, self.ranked.turn)
    }

    fn judgement(&self) -> Judgement {
        Judgement {
            score: self.ranked.score,
            relevance: self.relevance,
        }
    }
}

/// Turns ranked by the vectors of one model, best first.
#[derive(Debug, Clone, Default)]
pub struct ModelRanking {
    /// The turns.
    pub turns: Vec<ScoredTurn>,
    /// Turns of the searched spaces that have no vectors of the model yet.
    pub unembedded: HashSet<TurnKey>,
}

impl ModelRanking {
    /// The judgement of turns that are not among the best.
    fn floor(&self) -> Judgement {
        let best = &self.turns[..self.turns.len().min(FUSED_TURNS)];
        let relevance = best.iter().filter_map(|turn| turn.relevance);
        Judgement {
            score: best.last().map_or(0.0, |turn| turn.ranked.score),
            relevance: relevance.reduce(f32::min),
        }
    }

    /// The judgement of a turn, by its place in the ranking where it has one; absent where the turn
    /// has no vectors of the model.
    fn judgement(&self, turn: TurnKey, known: Judgement) -> Option<Judgement> {
        (!self.unembedded.contains(&turn)).then_some(known)
    }
}

/// Score and relevance of a turn by one model.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Judgement {
    score: f32,
    relevance: Option<f32>,
}

impl Judgement {
    /// The weighted mean of two judgements.
    fn mean(first: Self, second: Self) -> Self {
        let mean = |first: f32, second: f32| first + SECOND_PART * (second - first);
        let relevance = first.relevance.zip(second.relevance);
        Self {
            score: mean(first.score, second.score),
            relevance: relevance
                .map_or(first.relevance, |(first, second)| Some(mean(first, second))),
        }
    }
}

/// The turns of two rankings by the mean of their scores, of which the first counts twice; equal
/// ones in the order of the first ranking, then of the second. A turn without vectors of one of the
/// models has the score of the other alone. Signals and sources are those of the first model, and
/// absent where it does not rank the turn.
pub fn fuse(mut first: ModelRanking, mut second: ModelRanking) -> Vec<ScoredTurn> {
    let (first_floor, second_floor) = (first.floor(), second.floor());
    let ranked = std::mem::take(&mut first.turns);
    let mut others = std::mem::take(&mut second.turns);
    others.truncate(FUSED_TURNS);
    let places = others.iter().zip(1..);
    let mut places: HashMap<TurnKey, (u32, Judgement)> = places
        .map(|(turn, rank)| (turn.key(), (rank, turn.judgement())))
        .collect();
    let mut fused = Vec::with_capacity(ranked.len() + others.len());
    for (place, turn) in ranked.into_iter().enumerate() {
        let (key, own) = (turn.key(), turn.judgement());
        let other = places.remove(&key);
        let own = if other.is_some() && place >= FUSED_TURNS {
            first_floor
        } else {
            own
        };
        let told = other.map_or(second_floor, |(_, judgement)| judgement);
        let judgements = (first.judgement(key, own), second.judgement(key, told));
        let rank = other.map(|(rank, _)| rank);
        let place = (place.min(FUSED_TURNS), rank.unwrap_or(u32::MAX));
        fused.push((place, judged(turn, judgements, rank)));
    }
    for mut turn in others {
        let Some((rank, told)) = places.remove(&turn.key()) else {
            continue;
        };
        let own = first.judgement(turn.key(), first_floor);
        turn.ranked.signals.clear();
        turn.ranked.sources.clear();
        turn.ranked.stages.clear();
        turn.ranked.clues = Clues::unknown();
        let turn = judged(turn, (own, Some(told)), Some(rank));
        fused.push(((FUSED_TURNS, rank), turn));
    }
    fused.sort_by(|(place, turn), (other_place, other)| {
        let by_score = other.ranked.score.total_cmp(&turn.ranked.score);
        by_score.then_with(|| place.cmp(other_place))
    });
    fused.into_iter().map(|(_, turn)| turn).collect()
}

/// A turn with the mean of its judgements, or the one that there is.
fn judged(
    mut turn: ScoredTurn,
    judgements: (Option<Judgement>, Option<Judgement>),
    rank: Option<u32>,
) -> ScoredTurn {
    let judgement = match judgements {
        (Some(first), Some(second)) => Judgement::mean(first, second),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => turn.judgement(),
    };
    let explained: f32 = turn.ranked.signals.iter().map(|it| it.contribution).sum();
    if let (_, Some(second)) = judgements {
        turn.ranked.signals.push(SignalScore {
            signal: SECOND_MODEL.into(),
            value: second.score,
            contribution: judgement.score - explained,
        });
    }
    turn.ranked.stages.extend(rank.map(|rank| StageRank {
        stage: SECOND_MODEL.into(),
        rank,
        score: judgements.1.map(|second| second.score),
    }));
    turn.ranked.score = judgement.score;
    turn.relevance = judgement.relevance;
    turn
}

#[cfg(test)]
mod tests;
