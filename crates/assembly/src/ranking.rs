//! Ranking: in which order candidates are considered.
//!
//! Without diversity the order is fixed; with it, what is considered next depends on what was chosen so far.

use crate::candidate::Candidate;
use crate::common::Common;
use crate::hash::hash;
use crate::options::{Options, Untrusted};
use memfleet_language::fold;

const SECONDS_PER_DAY: f64 = 86_400.0;

/// The candidates in rank order, and those that were not considered yet.
pub(crate) struct Ranking<'a> {
    options: &'a Options<'a>,
    utilities: Vec<f64>,
    /// Whether a candidate ranks behind all that are not.
    behind: Vec<bool>,
    places: Vec<usize>,
    /// Not considered yet, the best first.
    waiting: Vec<usize>,
    likeness: Option<Likeness>,
}

impl<'a> Ranking<'a> {
    pub(crate) fn of(candidates: &[Candidate<'_>], options: &'a Options<'a>) -> Self {
        let utilities = utilities(candidates, options);
        let down_rank = options.untrusted == Untrusted::DownRank;
        let behind: Vec<bool> = candidates
            .iter()
            .map(|candidate| down_rank && candidate.trust.is_untrusted())
            .collect();
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        order.sort_by(|&left, &right| {
            let utility = utilities[right].total_cmp(&utilities[left]);
            let by_score = || candidates[left].by_score(&candidates[right]);
            let behind = behind[left].cmp(&behind[right]);
            behind.then(utility).then_with(by_score)
        });
        let mut places = vec![0; candidates.len()];
        for (place, &index) in order.iter().enumerate() {
            places[index] = place;
        }
        order.reverse();
        Self {
            options,
            utilities,
            behind,
            places,
            waiting: order,
            likeness: options
                .weights
                .diversify()
                .then(|| Likeness::of(candidates)),
        }
    }

    /// A candidate's place in rank order, diversity aside.
    pub(crate) fn place(&self, index: usize) -> usize {
        self.places[index]
    }

    /// The next to be considered.
    pub(crate) fn next(&mut self) -> Option<usize> {
        let Some(likeness) = &self.likeness else {
            return self.waiting.pop();
        };
        let lambda = self.options.weights.lambda;
        let value =
            |index: usize| lambda * self.utilities[index] - (1.0 - lambda) * likeness.most[index];
        // The last of the greatest is the best of them, as the best stand last.
        let best = (0..self.waiting.len()).max_by(|&left, &right| {
            let (left, right) = (self.waiting[left], self.waiting[right]);
            let ahead = self.behind[right].cmp(&self.behind[left]);
            ahead.then(value(left).total_cmp(&value(right)))
        })?;
        Some(self.waiting.remove(best))
    }

    /// Says that a candidate was chosen.
    pub(crate) fn chosen(&mut self, index: usize) {
        if let Some(likeness) = &mut self.likeness {
            likeness.compare(index);
        }
    }
}

/// What each candidate is worth by the weights alone.
fn utilities(candidates: &[Candidate<'_>], options: &Options<'_>) -> Vec<f64> {
    let weights = options.weights;
    let finite = |candidate: &Candidate<'_>| {
        let score = f64::from(candidate.score);
        score.is_finite().then_some(score)
    };
    let scores = || candidates.iter().filter_map(finite);
    let least = scores().fold(f64::INFINITY, f64::min);
    let greatest = scores().fold(f64::NEG_INFINITY, f64::max);
    let now = options.as_of.or_else(|| {
        let times = candidates.iter().map(Candidate::effective_time);
        times.max()
    });
    let utility = |candidate: &Candidate<'_>| {
        let relevance = match (candidate.relevance, finite(candidate)) {
            (Some(relevance), _) if relevance.is_finite() => f64::from(relevance),
            (_, Some(score)) if greatest > least => (score - least) / (greatest - least),
            (_, Some(_)) => 1.0,
            (_, None) => 0.0,
        };
        let age = now.map_or(0, |now| (now - candidate.effective_time()).num_seconds());
        let freshness = weights.freshness(age as f64 / SECONDS_PER_DAY);
        weights.relevance * relevance + weights.recency * freshness
    };
    candidates.iter().map(utility).collect()
}

/// How like each candidate is to the nearest of those that were chosen.
struct Likeness {
    /// The words of each candidate, each once.
    words: Vec<Vec<u64>>,
    common: Common,
    most: Vec<f64>,
}

impl Likeness {
    fn of(candidates: &[Candidate<'_>]) -> Self {
        let words = |candidate: &Candidate<'_>| {
            let mut words: Vec<u64> = fold(candidate.text).split_whitespace().map(hash).collect();
            words.sort_unstable();
            words.dedup();
            words
        };
        let words: Vec<Vec<u64>> = candidates.iter().map(words).collect();
        let mut common = Common::default();
        for words in &words {
            common.insert(words.iter().copied());
        }
        Self {
            words,
            common,
            most: vec![0.0; candidates.len()],
        }
    }

    fn compare(&mut self, chosen: usize) {
        let words = &self.words[chosen];
        let common = self.common.counts(words.iter().copied());
        for ((most, other), common) in self.most.iter_mut().zip(&self.words).zip(common) {
            let union = words.len() + other.len() - common as usize;
            if common > 0 {
                *most = most.max(f64::from(common) / union as f64);
            }
        }
    }
}
