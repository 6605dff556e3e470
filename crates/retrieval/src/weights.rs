//! Weights of the score, as data: set by cross-validation over several data sets, `weights.toml` in
//! the folder of a model in `data`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::plan::Wish;
use crate::signal::Signal;
use memfleet_domain::intent::Intent;

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
    /// What changes where the query is routed to episodes.
    pub routes: Routes,
    /// Factor of the best score in a turn's fragment.
    pub coherence: f32,
    /// Factor of what the graph reaches.
    pub graph: f32,
    /// The second round.
    pub again: Again,
}

/// How episodes rank by intent (AMA section 3.2: `b_abs`, `b_event`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Routes {
    /// For a query that asks how things went on over time.
    pub event: Route,
    /// For a query that asks for a summary.
    pub summary: Route,
    /// For a query that asks for all that was said of something.
    pub gather: Route,
    /// For a query that asks how two are connected.
    pub connect: Route,
}

/// What changes in a score.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Factor of the signals of turns.
    pub turns: f32,
    /// Factor of the signals of episodes.
    pub episodes: f32,
    /// Factor of the best score in a turn's fragment.
    pub coherence: f32,
    /// Factor of what the graph reaches from what the query names.
    pub graph: f32,
    /// What is taken away from the turn that opens an episode …
    pub opening: f32,
    /// … from the assistant's reply to it …
    pub reply: f32,
    /// … from a later turn of the user …
    pub later: f32,
    /// … and from a later reply.
    pub later_reply: f32,
}

/// The part that a turn plays in its episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Opening,
    Reply,
    Later,
    LaterReply,
}

/// The second round looks along what the first one found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Again {
    /// The best turns of the first round keep their places.
    pub kept: usize,
    /// As many of the first round may change places; the rest stays behind them.
    pub reach: usize,
    /// As many of them say what more is looked for; 0: there is no second round.
    pub seeds: usize,
    /// Factor of the likeness to them, z-scored.
    pub likeness: f32,
    /// Factor of late interaction with a turn's best fact, z-scored.
    pub facts: f32,
}

impl Route {
    /// What a part takes away.
    pub(crate) fn of(&self, part: Part) -> f32 {
        match part {
            Part::Opening => self.opening,
            Part::Reply => self.reply,
            Part::Later => self.later,
            Part::LaterReply => self.later_reply,
        }
    }
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
    /// The weights of the default model.
    pub fn shipped() -> Self {
        Self::from_toml(include_str!("../data/all-MiniLM-L6-v2/weights.toml"))
            .expect("the shipped weights are tested")
    }

    /// Reads and checks a weights file.
    pub fn from_toml(text: &str) -> Result<Self, WeightsError> {
        let weights: Self = toml::from_str(text)?;
        let finite = weights
            .signals
            .values()
            .chain(&weights.window)
            .chain([&weights.again.likeness, &weights.again.facts])
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

    /// AMA's priority: raw turns where details are asked for, else episodes for summaries and for what went on over time; before all
    /// these the wish for everything, and behind them how two are connected, which only the wording tells.
    pub(crate) fn route(&self, intent: Intent, wish: Wish) -> Route {
        let turns = Route {
            turns: 1.0,
            episodes: 1.0,
            coherence: self.coherence,
            graph: self.graph,
            opening: 0.0,
            reply: 0.0,
            later: 0.0,
            later_reply: 0.0,
        };
        match (wish, intent) {
            (Wish::All, _) => self.routes.gather,
            (_, Intent { fine: true, .. }) => turns,
            (
                _,
                Intent {
                    abstracted: true, ..
                },
            ) => self.routes.summary,
            (_, Intent { event: true, .. }) => self.routes.event,
            (Wish::Connection, _) => self.routes.connect,
            _ => turns,
        }
    }

    /// The factor of a signal on a route.
    pub(crate) fn routed(&self, signal: Signal, route: &Route) -> f32 {
        let factor = if signal.is_of_episode() {
            route.episodes
        } else {
            route.turns
        };
        match signal {
            Signal::EpisodePlace => self.of(signal),
            Signal::Graph => route.graph * self.of(signal),
            _ => factor * self.of(signal),
        }
    }

    /// The factor of a signal; 0 for one that is not named.
    pub fn of(&self, signal: Signal) -> f32 {
        self.signals.get(&signal).copied().unwrap_or(0.0)
    }

    /// The weights of a search whose query has no vectors: BM25 takes over the weight of what compares vectors. Else what says
    /// nothing of the query (novelty, opening, …) would decide.
    pub(crate) fn of_words(&self) -> Self {
        let of_passages = [Signal::Maxsim, Signal::MaxsimWindow, Signal::Cosine];
        let of_episodes = [Signal::EpisodeMaxsim, Signal::EpisodeCosine];
        let mut signals = self.signals.clone();
        for (to, from) in [
            (Signal::Bm25Window, &of_passages[..]),
            (Signal::Bm25Session, &[Signal::MaxsimSession]),
            (Signal::EpisodeBm25, &of_episodes),
        ] {
            let moved = from.iter().filter_map(|signal| signals.remove(signal));
            let moved: f32 = moved.sum();
            *signals.entry(to).or_default() += moved;
        }
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
