//! What ranks candidates: relevance, recency and diversity, each with a weight (AMP items 75 to 77).

/// The weights of a ranking.
///
/// A candidate's utility is `relevance` × its calibrated relevance + `recency` × 2^(−age / half-life). The calibrated relevance is its
/// probability where a scorer gave one, else its score between the least and the greatest of all candidates. With diversity, the next is the one with
/// the greatest λ × utility − (1 − λ) × its likeness to what is in the block already (maximal marginal relevance), likeness being the Jaccard
/// index of words. Equal utilities go by score, the newer, and id.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// Weight of the calibrated relevance.
    pub relevance: f64,
    /// Weight of recency.
    pub recency: f64,
    /// The age in days at which recency is half of what it was.
    pub half_life_days: f64,
    /// λ of diversity, 0 to 1. 1: no diversity.
    pub lambda: f64,
}

impl Weights {
    /// No weights: candidates rank by their score alone.
    pub const fn plain() -> Self {
        Self {
            relevance: 0.0,
            recency: 0.0,
            half_life_days: 90.0,
            lambda: 1.0,
        }
    }

    /// Relevance 1, recency 0.15 with a half-life of 90 days, λ 0.8.
    pub const fn balanced() -> Self {
        Self {
            relevance: 1.0,
            recency: 0.15,
            half_life_days: 90.0,
            lambda: 0.8,
        }
    }

    /// Whether the likeness to what is chosen counts.
    pub(crate) fn diversify(&self) -> bool {
        self.lambda < 1.0
    }

    /// How recent something of this age is, 0 to 1; the future counts as the present.
    pub(crate) fn freshness(&self, age_days: f64) -> f64 {
        let half_lives = age_days.max(0.0) / self.half_life_days;
        let freshness = (-half_lives).exp2();
        // A half-life of 0 makes 0 / 0 of the present.
        if freshness.is_nan() { 1.0 } else { freshness }
    }
}

impl Default for Weights {
    fn default() -> Self {
        Self::plain()
    }
}
