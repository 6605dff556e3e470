//! Coherence (Amory section 3.3): what was said at a stretch of one story stands together. A turn gains by the best turn of its fragment, so
//! that what names the matter brings along what is said of it without naming it. Fragments count where episodes do.

use std::collections::HashMap;

use memfleet_ports::retriever::SignalScore;

use crate::signals::{Evidence, Place};

/// What coherence adds to the scores of the turns.
pub(crate) struct Coherence {
    weight: f32,
    /// By turn: the highest score in its fragment; 0 where no turn is in any.
    values: Vec<f32>,
}

impl Coherence {
    /// `scores` are those of the turns at `places`.
    pub(crate) fn new(
        scores: &[f32],
        places: &[Place<'_>],
        evidence: &Evidence<'_>,
        weight: f32,
    ) -> Self {
        let fragments: Vec<_> = places.iter().map(|it| evidence.fragment(*it)).collect();
        if weight == 0.0 || fragments.iter().all(Option::is_none) {
            let values = vec![0.0; scores.len()];
            return Self { weight, values };
        }
        let mut best: HashMap<(usize, u32), f32> = HashMap::new();
        for (&fragment, &score) in fragments.iter().zip(scores) {
            if let Some(fragment) = fragment {
                let best = best.entry(fragment).or_insert(score);
                *best = best.max(score);
            }
        }
        // A turn in no fragment stands alone: its own score is the best.
        let found = fragments.iter().zip(scores);
        let found = found.map(|(it, own)| it.and_then(|it| best.get(&it)).unwrap_or(own));
        let values = found.copied().collect();
        Self { weight, values }
    }

    /// What it adds to a turn's score.
    pub(crate) fn added(&self, at: usize) -> f32 {
        self.weight * self.values[at]
    }

    /// The same as a signal.
    pub(crate) fn explain(&self, at: usize) -> SignalScore {
        SignalScore {
            signal: "coherence".into(),
            value: self.values[at],
            contribution: self.added(at),
        }
    }
}
