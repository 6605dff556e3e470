//! Recall and coverage of evidence at several depths, over all questions and by category.

use std::collections::BTreeMap;

use crate::dataset::Question;

/// A mean share at each depth (turns or tokens), in percent.
pub type Means = BTreeMap<usize, f64>;

/// Sums of shares at each depth.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Shares {
    questions: usize,
    sums: BTreeMap<usize, f64>,
}

impl Shares {
    /// Adds one question: its share, 0 to 1, at each depth.
    pub fn add(&mut self, shares: impl IntoIterator<Item = (usize, f64)>) {
        self.questions += 1;
        for (depth, share) in shares {
            *self.sums.entry(depth).or_default() += share;
        }
    }

    /// Questions added.
    pub fn questions(&self) -> usize {
        self.questions
    }

    /// The mean at each depth in percent.
    pub fn means(&self) -> Means {
        let questions = self.questions.max(1) as f64;
        self.sums
            .iter()
            .map(|(&depth, sum)| (depth, 100.0 * sum / questions))
            .collect()
    }

    /// Adds the questions of another collection at the same depths.
    pub fn merge(&mut self, other: &Self) {
        self.questions += other.questions;
        for (&depth, sum) in &other.sums {
            *self.sums.entry(depth).or_default() += sum;
        }
    }
}

/// Recall and coverage of ranked turns.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tally {
    /// Share of the evidence among the first k turns.
    pub recall: Shares,
    /// Whether all evidence is among the first k turns.
    pub coverage: Shares,
    /// Sum of the reciprocal rank of the first turn that is evidence; none is found: 0.
    reciprocal_ranks: f64,
}

impl Tally {
    /// The depths that are reported.
    pub const DEPTHS: [usize; 7] = [1, 3, 5, 10, 20, 50, 100];

    /// Adds one question; `found` are places of turns, best first.
    pub fn add(&mut self, question: &Question, found: &[usize]) {
        let share = |depth: usize| {
            let first = &found[..depth.min(found.len())];
            let hits = question
                .evidence
                .iter()
                .filter(|place| first.contains(place))
                .count();
            hits as f64 / question.evidence.len() as f64
        };
        let first = found.iter().position(|it| question.evidence.contains(it));
        self.reciprocal_ranks += first.map_or(0.0, |place| 1.0 / (place + 1) as f64);
        self.recall
            .add(Self::DEPTHS.map(|depth| (depth, share(depth))));
        self.coverage
            .add(Self::DEPTHS.map(|depth| (depth, f64::from(share(depth) >= 1.0))));
    }

    /// Mean of the reciprocal ranks (MRR), in percent.
    pub fn mean_reciprocal_rank(&self) -> f64 {
        100.0 * self.reciprocal_ranks / self.recall.questions().max(1) as f64
    }

    /// Adds the questions of another tally.
    pub fn merge(&mut self, other: &Self) {
        self.recall.merge(&other.recall);
        self.coverage.merge(&other.coverage);
        self.reciprocal_ranks += other.reciprocal_ranks;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(evidence: &[usize]) -> Question {
        Question {
            text: String::new(),
            category: String::new(),
            evidence: evidence.to_vec(),
        }
    }

    #[test]
    fn recall_is_a_share_and_coverage_is_all_or_nothing() {
        let mut tally = Tally::default();
        tally.add(&question(&[3, 9]), &[3, 1, 2, 4, 5, 6, 7, 8, 10, 11, 9]);
        tally.add(&question(&[1]), &[]);
        assert_eq!(tally.recall.means()[&10], 25.0);
        assert_eq!(tally.recall.means()[&20], 50.0);
        assert_eq!(tally.coverage.means()[&10], 0.0);
        assert_eq!(tally.coverage.means()[&20], 50.0);
        assert_eq!(tally.recall.questions(), 2);
        assert_eq!(tally.mean_reciprocal_rank(), 50.0);
    }

    #[test]
    fn tallies_add_up() {
        let (mut one, mut two, mut both) = (Tally::default(), Tally::default(), Tally::default());
        for (tally, evidence) in [(&mut one, [0, 1]), (&mut two, [0, 7])] {
            tally.add(&question(&evidence), &[0, 1]);
            both.add(&question(&evidence), &[0, 1]);
        }
        one.merge(&two);
        assert_eq!(one, both);
    }
}
