//! One ranking of two: a balanced search compares vectors of two models and takes a weighted mean
//! of their scores.

use std::cmp::Reverse;
use std::collections::HashMap;

use memfleet_domain::ids::TurnId;
use memfleet_ports::retriever::{SignalScore, StageRank};

use crate::rank::Ranked;

/// The second model's part of the mean. A half is worth less: the served model is the one that
/// reads the space best (docs/benchmarks.md, Languages).
const SECOND_PART: f32 = 1.0 / 3.0;

/// Name of the signal and of the stage that show the score by the second model.
const SECOND_MODEL: &str = "second_model";

/// A ranked turn with its relevance, where that is known.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoredTurn {
    /// The turn and its score.
    pub ranked: Ranked,
    /// The probability that it bears on the query.
    pub relevance: Option<f32>,
}

/// Turns by the mean of their scores in two rankings, of which the first counts twice. A turn that
/// one of them lacks has the last score there; one that is not embedded yet by one of the models,
/// and so has no relevance there, has the score and relevance of the other alone. Signals are those
/// of the first ranking that names the turn.
pub fn fuse(first: Vec<ScoredTurn>, second: Vec<ScoredTurn>) -> Vec<ScoredTurn> {
    let (first_floor, second_floor) = (Floor::of(&first), Floor::of(&second));
    let mut others: HashMap<(usize, TurnId), (u32, ScoredTurn)> = HashMap::new();
    for (rank, turn) in (1..).zip(second) {
        others.insert((turn.ranked.space, turn.ranked.turn), (rank, turn));
    }
    let mut fused = Vec::with_capacity(first.len() + others.len());
    for turn in first {
        let place = (turn.ranked.space, turn.ranked.turn);
        fused.push(match others.remove(&place) {
            Some((rank, other)) => mean(turn, other.ranked.score, other.relevance, Some(rank)),
            None => mean(turn, second_floor.score, second_floor.relevance, None),
        });
    }
    for (rank, mut turn) in others.into_values() {
        let second = (turn.ranked.score, turn.relevance);
        // Its own signals are those of the second model, whose sum is shown as one.
        turn.ranked.signals.clear();
        turn.ranked.score = first_floor.score;
        turn.relevance = first_floor.relevance;
        fused.push(mean(turn, second.0, second.1, Some(rank)));
    }
    fused.sort_by(|one, other| {
        let (one, other) = (&one.ranked, &other.ranked);
        let by_score = other.score.total_cmp(&one.score);
        by_score
            .then_with(|| (one.space, Reverse(one.turn)).cmp(&(other.space, Reverse(other.turn))))
    });
    fused
}

fn weighted(first: f32, second: f32) -> f32 {
    first + SECOND_PART * (second - first)
}

/// The last score and the lowest relevance of a ranking.
struct Floor {
    score: f32,
    relevance: Option<f32>,
}

impl Floor {
    fn of(turns: &[ScoredTurn]) -> Self {
        let relevance = turns.iter().filter_map(|turn| turn.relevance);
        Self {
            score: turns.last().map_or(0.0, |turn| turn.ranked.score),
            relevance: relevance.reduce(f32::min),
        }
    }
}

/// A turn with the mean of its score and relevance and those by the second model.
fn mean(mut turn: ScoredTurn, score: f32, relevance: Option<f32>, rank: Option<u32>) -> ScoredTurn {
    let own = turn.ranked.score;
    (turn.ranked.score, turn.relevance) = match (turn.relevance, relevance) {
        (Some(one), Some(other)) => (weighted(own, score), Some(weighted(one, other))),
        (None, Some(other)) => (score, Some(other)),
        (one, None) => (own, one),
    };
    let explained: f32 = turn.ranked.signals.iter().map(|it| it.contribution).sum();
    turn.ranked.signals.push(SignalScore {
        signal: SECOND_MODEL.into(),
        value: score,
        contribution: turn.ranked.score - explained,
    });
    turn.ranked.stages.extend(rank.map(|rank| StageRank {
        stage: SECOND_MODEL.into(),
        rank,
        score: Some(score),
    }));
    turn
}

#[cfg(test)]
mod tests {
    use memfleet_domain::ids::DerivationId;

    use super::*;
    use crate::relevance::Clues;

    fn turn(number: u8) -> TurnId {
        TurnId::from_bytes([number; 16])
    }

    fn scored(number: u8, score: f32, relevance: Option<f32>) -> ScoredTurn {
        let own = SignalScore {
            signal: "own".into(),
            value: 1.0,
            contribution: score,
        };
        let ranked = Ranked {
            space: 0,
            turn: turn(number),
            score,
            passage: (0, 1),
            clues: Clues::told(|_| 0.0),
            signals: vec![own],
            fact: None::<DerivationId>,
            episode: None,
            sources: Vec::new(),
            stages: Vec::new(),
        };
        ScoredTurn { ranked, relevance }
    }

    #[test]
    fn scores_are_means_and_what_a_ranking_lacks_has_its_last_score() {
        let first = vec![scored(1, 4.0, Some(0.625)), scored(2, 1.0, Some(0.25))];
        let second = vec![scored(3, 10.0, Some(0.625)), scored(1, 1.0, Some(0.25))];
        let fused = fuse(first, second);
        let told = fused
            .iter()
            .map(|it| (it.ranked.turn, it.ranked.score, it.relevance));
        // Two thirds of 1 and a third of 10, of 4 and 1, of 1 and 1.
        let expected = [
            (turn(3), 4.0, Some(0.375)),
            (turn(1), 3.0, Some(0.5)),
            (turn(2), 1.0, Some(0.25)),
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected);
        let ranks = fused
            .iter()
            .map(|it| it.ranked.stages.first().map(|stage| stage.rank));
        assert_eq!(ranks.collect::<Vec<_>>(), [Some(1), Some(2), None]);
    }

    #[test]
    fn contributions_add_up_to_the_score() {
        let first = vec![scored(1, 4.0, Some(0.5)), scored(2, 2.0, None)];
        let second = vec![scored(2, 9.0, Some(0.75)), scored(1, 1.0, Some(0.25))];
        for turn in fuse(first, second) {
            let Ranked { score, signals, .. } = turn.ranked;
            let sum: f32 = signals.iter().map(|it| it.contribution).sum();
            assert!((sum - score).abs() < 1e-6, "{signals:?}");
        }
    }

    #[test]
    fn a_turn_without_vectors_of_one_model_keeps_the_score_of_the_other() {
        let first = vec![scored(1, 4.0, Some(0.5)), scored(2, 2.0, None)];
        let second = vec![scored(2, 3.0, Some(0.75)), scored(1, 1.0, None)];
        let told = fuse(first, second).into_iter();
        let told: Vec<_> = told.map(|it| (it.ranked.score, it.relevance)).collect();
        assert_eq!(told, [(4.0, Some(0.5)), (3.0, Some(0.75))]);
    }
}
