//! `manifest.toml`: what a model is and what its files must hash to.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// File name of the ONNX graph.
pub(crate) const MODEL: &str = "model.onnx";
/// File name of the ONNX graph's table of word vectors.
pub(crate) const MODEL_DATA: &str = "model.onnx.data";
/// File name of the tokenizer.
pub(crate) const TOKENIZER: &str = "tokenizer.json";
/// File name of the tokenizer's compact form, which tokenizers of one kind have.
pub(crate) const COMPACT_TOKENIZER: &str = "tokenizer.bin";
/// File name of the reference vectors.
pub(crate) const REFERENCE: &str = "reference.json";
/// File name of the manifest itself.
pub(crate) const MANIFEST: &str = "manifest.toml";

/// Description of a model directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Name in the registry.
    pub name: String,
    /// Revision of the source that the files were made of.
    pub revision: String,
    /// How the ONNX file was made of the source; part of the embedding space.
    pub recipe: String,
    /// Components of a vector.
    pub dimensions: usize,
    /// How the sentence vector is made.
    pub pooling: Pooling,
    /// What is done to vectors at the end.
    pub normalisation: Normalisation,
    /// Pieces of a text that are read, special ones included.
    pub max_tokens: usize,
    /// Put before a query; most models have none.
    #[serde(default)]
    pub query_prefix: String,
    /// Put before a passage; most models have none.
    #[serde(default)]
    pub passage_prefix: String,
    /// SPDX identifier of the weights' licence.
    pub licence: String,
    /// SHA-256 of every other file in the directory.
    pub files: BTreeMap<String, String>,
}

/// How the sentence vector is made of the token vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pooling {
    /// Mean over all pieces, special ones included.
    Mean,
    /// The vector of the first piece.
    First,
}

/// What is done to vectors at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Normalisation {
    /// Scaled to length 1.
    Unit,
}

impl From<Pooling> for memfleet_encoder::Pooling {
    fn from(pooling: Pooling) -> Self {
        match pooling {
            Pooling::Mean => Self::Mean,
            Pooling::First => Self::First,
        }
    }
}

impl Manifest {
    /// Reads the manifest of a directory.
    pub(crate) fn read(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(MANIFEST);
        let refused = |reason: String| Error::NotAModel {
            path: directory.to_owned(),
            reason,
        };
        let text =
            fs::read_to_string(&path).map_err(|error| refused(format!("{MANIFEST}: {error}")))?;
        let manifest: Self =
            toml::from_str(&text).map_err(|error| refused(format!("{MANIFEST}: {error}")))?;
        for required in [MODEL, TOKENIZER, REFERENCE] {
            if !manifest.files.contains_key(required) {
                return Err(refused(format!("{MANIFEST} does not list {required}")));
            }
        }
        Ok(manifest)
    }

    /// Writes the manifest into a directory.
    pub(crate) fn write(&self, directory: &Path) -> Result<(), Error> {
        let path = directory.join(MANIFEST);
        let text =
            toml::to_string_pretty(self).expect("plain strings and numbers have a TOML form");
        fs::write(&path, text).map_err(Error::file(&path))
    }
}
