//! The embedding models that a configuration names, as they lie on this machine.

use std::path::PathBuf;

use memfleet_domain::embedding::BESIDE;
use memfleet_models::ModelDirectory;
use memfleet_retrieval::Calibration;

/// The pulled models of a configuration.
#[derive(Debug, Clone)]
pub struct ConfiguredModels {
    /// Model of the token vectors, and of sentence vectors where no other is.
    pub main: ModelDirectory,
    /// Model of the sentence vectors beside it.
    pub beside: Option<ModelDirectory>,
    /// Model of spaces whose texts the main one does not read.
    pub multilingual: Option<ModelDirectory>,
}

impl ConfiguredModels {
    /// The name of the default model: two names where its sentence vectors are those of another.
    pub fn name(&self) -> String {
        let main = &self.main.manifest().name;
        match &self.beside {
            Some(beside) => format!("{main}{BESIDE}{}", beside.manifest().name),
            None => main.clone(),
        }
    }

    /// The calibration of the default model, or where it has none that of the model that has one
    /// by default: what a measurement begins with.
    pub fn calibration(&self) -> Calibration {
        let shipped = Calibration::shipped(&self.name());
        shipped.unwrap_or_default()
    }

    /// The folder that they lie in.
    pub fn folder(&self) -> PathBuf {
        let folder = self.main.path().parent();
        folder.map(PathBuf::from).unwrap_or_default()
    }
}
