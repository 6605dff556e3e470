//! The embedding models that a configuration names, as they lie on this machine.

use std::path::PathBuf;

use memfleet_models::ModelDirectory;

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
    /// The folder that they lie in.
    pub fn folder(&self) -> PathBuf {
        let folder = self.main.path().parent();
        folder.map(PathBuf::from).unwrap_or_default()
    }
}
