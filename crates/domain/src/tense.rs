//! The tense of a prompt: the time that it asks about.

/// Time that a prompt asks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PromptTense {
    /// Present; also a prompt that asks about no time.
    Now,
    /// Past: an earlier value.
    Before,
    /// Time that the prompt names.
    AsOf,
    /// All values that there were.
    All,
}

impl PromptTense {
    /// Every tense, in the order of the reader's scores.
    pub const ALL: [Self; 4] = [Self::Now, Self::Before, Self::AsOf, Self::All];

    /// The tense of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tense| tense.name() == name)
    }

    /// Name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Now => "now",
            Self::Before => "before",
            Self::AsOf => "asof",
            Self::All => "all",
        }
    }
}

/// Probabilities of the tenses of a prompt; they sum to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TenseScores {
    /// Probabilities in the order of [`PromptTense::ALL`].
    pub probabilities: [f32; PromptTense::ALL.len()],
}

impl TenseScores {
    /// Scores of a prompt whose tense is known.
    pub fn certain(tense: PromptTense) -> Self {
        Self {
            probabilities: PromptTense::ALL.map(|it| f32::from(u8::from(it == tense))),
        }
    }

    /// Probability of a tense.
    pub fn probability(&self, tense: PromptTense) -> f32 {
        let place = PromptTense::ALL.iter().position(|it| *it == tense);
        place.map_or(0.0, |place| self.probabilities[place])
    }

    /// The tense with the highest probability; the first of those where several have it.
    pub fn likeliest(&self) -> PromptTense {
        let mut best = (PromptTense::Now, f32::MIN);
        for (tense, &probability) in PromptTense::ALL.iter().zip(&self.probabilities) {
            if probability > best.1 {
                best = (*tense, probability);
            }
        }
        best.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likeliest_tense_has_the_highest_probability() {
        let scores = TenseScores {
            probabilities: [0.2, 0.5, 0.2, 0.1],
        };
        assert_eq!(scores.likeliest(), PromptTense::Before);
        assert!((scores.probability(PromptTense::AsOf) - 0.2).abs() < f32::EPSILON);
        let none = TenseScores {
            probabilities: [f32::NAN; 4],
        };
        assert_eq!(none.likeliest(), PromptTense::Now);
    }

    #[test]
    fn every_tense_is_known_by_its_name() {
        for tense in PromptTense::ALL {
            assert_eq!(PromptTense::named(tense.name()), Some(tense));
            assert_eq!(TenseScores::certain(tense).likeliest(), tense);
        }
        assert_eq!(PromptTense::named("unknown"), None);
    }
}
