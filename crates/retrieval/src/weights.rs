//! What the score is made of, as data: set by cross-validation over several data sets, shipped as `data/weights.toml`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::signal::Signal;

/// Parameters of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weights {
    /// Up to this many turns the second stage scores every one; only larger searches have a first stage.
    pub exhaustive: usize,
    /// Passages that the first stage may name: a third each by window BM25, sentence vectors, and their sum.
    pub candidates: usize,
    /// Discount of a neighbour's word piece by distance: one before or after, two before or after, …
    pub window: Vec<f32>,
    /// Sessions from which on the signals of whole sessions count in full; among fewer they say less.
    pub sessions: usize,
    /// Parameters of every BM25.
    pub bm25: Bm25,
    /// Factor of each signal; a signal that is not named is not computed.
    pub signals: BTreeMap<Signal, f32>,
}

/// Parameters of BM25.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bm25 {
    /// How soon repeats stop counting.
    pub k1: f32,
    /// How far length counts, 0 to 1.
    pub b: f32,
}

/// Why a weights file was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WeightsError {
    /// Not TOML, or a name that no signal has.
    #[error("weights cannot be read: {0}")]
    Syntax(#[from] toml::de::Error),
    /// A number that is no number, or a window that grows.
    #[error("weights hold a value that is not usable: {0}")]
    Value(&'static str),
}

impl Weights {
    /// The weights that ship with memfleet.
    pub fn shipped() -> Self {
        Self::from_toml(include_str!("../data/weights.toml"))
            .expect("the shipped weights are tested")
    }

    /// Reads and checks a weights file.
    pub fn from_toml(text: &str) -> Result<Self, WeightsError> {
        let weights: Self = toml::from_str(text)?;
        let finite = weights
            .signals
            .values()
            .chain(&weights.window)
            .all(|value| value.is_finite());
        if !finite || !weights.bm25.k1.is_finite() {
            return Err(WeightsError::Value("every number must be finite"));
        }
        if weights
            .window
            .iter()
            .any(|discount| !(0.0..=1.0).contains(discount))
        {
            return Err(WeightsError::Value(
                "a window discount must lie between 0 and 1",
            ));
        }
        if weights.bm25.k1 < 0.0 || !(0.0..=1.0).contains(&weights.bm25.b) {
            return Err(WeightsError::Value(
                "k1 must not be negative and b must lie between 0 and 1",
            ));
        }
        if weights.candidates < 3 {
            return Err(WeightsError::Value("at least 3 candidates are needed"));
        }
        Ok(weights)
    }

    /// The factor of a signal; 0 for one that is not named.
    pub fn of(&self, signal: Signal) -> f32 {
        self.signals.get(&signal).copied().unwrap_or(0.0)
    }

    /// The weights of a search whose query has no vectors: BM25 takes over the weight of what compares vectors. Else what says
    /// nothing of the query (novelty, opening, …) would decide.
    pub(crate) fn of_words(&self) -> Self {
        let mut signals = self.signals.clone();
        let mut move_to = |words: Signal, compared: &[Signal]| {
            let moved: f32 = compared
                .iter()
                .filter_map(|signal| signals.remove(signal))
                .sum();
            *signals.entry(words).or_default() += moved;
        };
        let of_passages = [Signal::Maxsim, Signal::MaxsimWindow, Signal::Cosine];
        move_to(Signal::Bm25Window, &of_passages);
        move_to(Signal::Bm25Session, &[Signal::MaxsimSession]);
        Self {
            signals,
            ..self.clone()
        }
    }

    /// Passages that each of the three ways of the first stage may name.
    pub(crate) fn share(&self) -> usize {
        self.candidates / 3
    }

    /// Whether any of the signals counts.
    pub(crate) fn use_any(&self, signals: &[Signal]) -> bool {
        signals.iter().any(|&signal| self.of(signal) != 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_weights_are_valid() {
        assert!(Weights::shipped().of(Signal::MaxsimWindow) > 0.0);
    }

    #[test]
    fn without_vectors_words_weigh_as_much_as_all_comparisons() {
        let (shipped, words) = (Weights::shipped(), Weights::shipped().of_words());
        assert!(!words.use_any(&[Signal::Maxsim, Signal::MaxsimWindow, Signal::Cosine]));
        assert!(words.of(Signal::Bm25Window) > shipped.of(Signal::MaxsimWindow));
        let sum = |weights: &Weights| weights.signals.values().sum::<f32>();
        assert!((sum(&words) - sum(&shipped)).abs() < 1e-5);
    }

    #[test]
    fn names_of_signals_are_those_of_the_file() {
        let signals: BTreeMap<Signal, f32> = Signal::ALL.map(|signal| (signal, 1.0)).into();
        let text = toml::to_string(&Weights {
            signals,
            ..Weights::shipped()
        })
        .unwrap();
        for signal in Signal::ALL {
            assert!(
                text.contains(&format!("\n{} = 1.0", signal.name())),
                "{}",
                signal.name()
            );
        }
    }

    #[test]
    fn unknown_signals_and_impossible_numbers_are_refused() {
        let text = toml::to_string(&Weights::shipped()).unwrap();
        assert!(matches!(
            Weights::from_toml(&format!("{text}\nluck = 1.0")),
            Err(WeightsError::Syntax(_))
        ));
        let with = |change: fn(&mut Weights)| {
            let mut weights = Weights::shipped();
            change(&mut weights);
            Weights::from_toml(&toml::to_string(&weights).unwrap())
        };
        assert!(with(|_| ()).is_ok());
        let changes: [fn(&mut Weights); 5] = [
            |weights| weights.window = vec![1.5],
            |weights| weights.candidates = 0,
            |weights| weights.bm25.b = 2.0,
            |weights| weights.bm25.k1 = f32::INFINITY,
            |weights| _ = weights.signals.insert(Signal::Date, f32::NAN),
        ];
        for change in changes {
            assert!(matches!(with(change), Err(WeightsError::Value(_))));
        }
    }
}
