//! The embedding models that a configuration names, as they lie on this machine.

use std::path::PathBuf;

use memfleet_models::{ModelDirectory, known, known_models};
use memfleet_retrieval::ModelCalibration;

/// The pulled models of a configuration.
#[derive(Debug, Clone)]
pub struct ConfiguredModels {
    /// Model of all spaces but those whose texts the multilingual one reads better.
    pub main: ModelDirectory,
    /// Model of those.
    pub multilingual: Option<ModelDirectory>,
}

impl ConfiguredModels {
    /// The name of the main model.
    pub fn name(&self) -> &str {
        &self.main.manifest().name
    }

    /// The calibration of the main model, or where it has none the default one: what a measurement
    /// begins with.
    pub fn calibration(&self) -> ModelCalibration {
        let shipped = ModelCalibration::shipped(self.name());
        shipped.unwrap_or_default()
    }

    /// The folder that they lie in.
    pub fn folder(&self) -> PathBuf {
        let folder = self.main.path().parent();
        folder.map(PathBuf::from).unwrap_or_default()
    }
}

/// The message of a name that no model has.
pub fn unknown_model(name: &str) -> Option<String> {
    let names = known_models().iter().map(|model| model.name.as_str());
    let names = names.collect::<Vec<_>>().join(", ");
    let message = format!("`{name}` is not a model that can be fetched; known: {names}");
    known(name).is_none().then_some(message)
}

#[cfg(test)]
mod tests {
    use memfleet_domain::policy::NEED_READER;
    use memfleet_understanding::ReaderModel;

    use super::*;

    #[test]
    fn thresholds_of_needs_are_of_the_reader_of_this_program() {
        let advice = "choose the thresholds of gate 3 anew (docs/gates.md)";
        assert_eq!(NEED_READER, ReaderModel::NAME, "{advice}");
    }

    #[test]
    fn calibrations_are_of_the_revisions_that_a_pull_fetches() {
        for model in known_models() {
            let shipped = ModelCalibration::shipped(&model.name);
            let is_fitted = shipped.is_none_or(|calibration| calibration.is_of(&model.revision));
            assert!(is_fitted, "{}: fit weights and relevance anew", model.name);
        }
    }
}
