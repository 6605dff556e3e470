//! How likely it is that a turn bears on a query. A score only ranks within its answer; a relevance
//! is a probability, which can be compared over answers and with a threshold (docs/retrieval.md,
//! Relevance). It is a logistic regression over [`Clue`]s; its coefficients are data:
//! `relevance.toml` in the folder of a model in `data`, set by `memfleet bench relevance`.

use std::collections::BTreeMap;

use memfleet_ports::retriever::SignalScore;
use serde::{Deserialize, Serialize};

/// One thing that a relevance is told from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clue {
    /// The signal `maxsim_window` before standardising, −1 to 1.
    MaxsimWindow,
    /// The signal `bm25_session` as a share of what no session can exceed, 0 to 1; 0 for a query without terms.
    WordsSession,
    /// 1: the query says whose words it asks for, and somebody else said the turn. Where it does not say, or sessions have more than two
    /// speakers, no turn is told from another by it.
    OtherSpeaker,
    /// The signal `date`, 0 to 1.
    Date,
    /// How far the turn is from the dates that the query names, 0 to 1; 0 where it names none.
    OtherDate,
    /// ln of the number of candidates.
    Candidates,
    /// Standard deviations by which its score exceeds the mean of all candidates.
    Standing,
    /// Standard deviations by which it stays behind the best, at least 0.
    Behind,
    /// `standing` × `candidates`: to stand out among many is less rare.
    StandingAmong,
    /// `behind` × `candidates`.
    BehindAmong,
}

impl Clue {
    /// Every clue, in the order of an explanation.
    pub const ALL: [Self; 10] = [
        Self::MaxsimWindow,
        Self::WordsSession,
        Self::OtherSpeaker,
        Self::Date,
        Self::OtherDate,
        Self::Candidates,
        Self::Standing,
        Self::Behind,
        Self::StandingAmong,
        Self::BehindAmong,
    ];

    /// The name in explanations. In the file of coefficients it is without `clue_`, which tells clues from signals.
    pub fn name(self) -> &'static str {
        match self {
            Self::MaxsimWindow => "clue_maxsim_window",
            Self::WordsSession => "clue_words_session",
            Self::OtherSpeaker => "clue_other_speaker",
            Self::Date => "clue_date",
            Self::OtherDate => "clue_other_date",
            Self::Candidates => "clue_candidates",
            Self::Standing => "clue_standing",
            Self::Behind => "clue_behind",
            Self::StandingAmong => "clue_standing_among",
            Self::BehindAmong => "clue_behind_among",
        }
    }
}

/// The clues of one turn; NaN where what a clue needs is missing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clues([f32; Clue::ALL.len()]);

impl Clues {
    /// Each as `value` says.
    pub(crate) fn told(value: impl FnMut(Clue) -> f32) -> Self {
        Self(Clue::ALL.map(value))
    }

    /// None of them is known.
    pub(crate) fn unknown() -> Self {
        Self::told(|_| f32::NAN)
    }

    /// One of them.
    pub fn of(&self, clue: Clue) -> f32 {
        self.0[clue as usize]
    }

    /// All that are known, as parts of a breakdown: they add nothing to the score.
    pub fn explain(&self) -> impl Iterator<Item = SignalScore> {
        let explained = |clue: Clue| SignalScore {
            signal: clue.name().into(),
            value: self.of(clue),
            contribution: 0.0,
        };
        let all = Clue::ALL.into_iter().map(explained);
        all.filter(|clue| clue.value.is_finite())
    }
}

/// A calibrated scorer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relevance {
    /// Name and version: relevances of two names must not be compared, nor held against the same threshold.
    pub name: String,
    /// Log-odds where every clue is 0.
    pub intercept: f32,
    /// Log-odds that one unit of a clue adds; a clue that is not named counts nothing.
    pub clues: BTreeMap<Clue, f32>,
}

impl Relevance {
    /// The scorer of the default model, fitted to its weights.
    pub fn shipped() -> Self {
        toml::from_str(include_str!("../data/all-MiniLM-L6-v2/relevance.toml"))
            .expect("the shipped coefficients are tested")
    }

    /// The probability, 0 to 1, that the turn bears on the query; none where a clue that counts is missing.
    pub fn of(&self, clues: &Clues) -> Option<f32> {
        let added = self.clues.iter();
        let added = added.map(|(&clue, coefficient)| coefficient * clues.of(clue));
        let log_odds = self.intercept + added.sum::<f32>();
        log_odds
            .is_finite()
            .then(|| (1.0 + (-log_odds).exp()).recip())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn clues(values: [f32; Clue::ALL.len()]) -> Clues {
        Clues(values)
    }

    #[test]
    fn the_shipped_scorer_is_named_and_knows_a_match_from_none() {
        let shipped = Relevance::shipped();
        assert_eq!(shipped.name, "late-interaction-1");
        let told = |maxsim: f32, standing: f32, behind: f32| {
            let candidates = 100_f32.ln();
            let among = (standing * candidates, behind * candidates);
            let all = [
                maxsim, 0.3, 0.0, 0.0, 0.0, candidates, standing, behind, among.0, among.1,
            ];
            shipped.of(&clues(all)).unwrap()
        };
        let (found, passed_over) = (told(0.85, 5.0, 0.0), told(0.3, 0.0, 5.0));
        assert!(found > 0.3, "{found}");
        assert!(passed_over < 0.0002, "{passed_over}");
    }

    #[test]
    fn a_turn_without_a_clue_that_counts_has_no_relevance() {
        let mut values = [0.5; Clue::ALL.len()];
        values[Clue::MaxsimWindow as usize] = f32::NAN;
        assert_eq!(Relevance::shipped().of(&clues(values)), None);
        let known = clues(values).explain().count();
        assert_eq!(known, Clue::ALL.len() - 1);
    }

    #[test]
    fn names_are_those_of_the_file_with_a_prefix() {
        for (clue, _) in Clue::ALL.into_iter().zip(0..) {
            let coefficients = BTreeMap::from([(clue, 1.0)]);
            let text = toml::to_string(&coefficients).unwrap();
            let name = clue.name().strip_prefix("clue_").unwrap();
            assert_eq!(text, format!("{name} = 1.0\n"));
        }
    }

    proptest! {
        #[test]
        fn what_is_told_is_a_probability(values in prop::array::uniform10(prop::num::f32::ANY)) {
            if let Some(relevance) = Relevance::shipped().of(&clues(values)) {
                prop_assert!((0.0..=1.0).contains(&relevance), "{relevance}");
            }
        }
    }
}
