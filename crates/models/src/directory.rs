//! A model on disk.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use memfleet_encoder::{Encoder, ModelFiles, ModelTokenizer, Spec};

use crate::error::Error;
use crate::manifest::{COMPACT_TOKENIZER, MODEL, Manifest, TOKENIZER};

/// A directory with a model and its manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelDirectory {
    path: PathBuf,
    manifest: Manifest,
}

impl ModelDirectory {
    /// Reads the manifest; the other files are read when the model is loaded or verified.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self {
            path: path.to_owned(),
            manifest: Manifest::read(path)?,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it is.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The files that the encoder opens.
    pub fn files(&self) -> ModelFiles {
        let has_compact = self.manifest.files.contains_key(COMPACT_TOKENIZER);
        let tokenizer = if has_compact {
            COMPACT_TOKENIZER
        } else {
            TOKENIZER
        };
        ModelFiles {
            model: self.path.join(MODEL),
            tokenizer: self.path.join(tokenizer),
        }
    }

    /// How the encoder is to run it.
    pub fn spec(&self) -> Spec {
        let Manifest {
            max_tokens,
            dimensions,
            pooling,
            ..
        } = self.manifest;
        Spec {
            max_tokens,
            dimensions,
            pooling: pooling.into(),
        }
    }

    /// Loads the tokenizer alone.
    pub fn tokenizer(&self) -> Result<ModelTokenizer, Error> {
        Ok(ModelTokenizer::open(
            &self.files().tokenizer,
            self.spec().max_tokens,
        )?)
    }

    /// Loads the model to run on this many threads.
    pub fn load(&self, threads: NonZeroUsize) -> Result<Encoder, Error> {
        Ok(Encoder::open(&self.files(), self.spec(), threads)?)
    }
}

/// The models in a model folder, by name. A folder that does not exist holds none; what is not a model is left out.
pub fn list(root: &Path) -> Result<Vec<ModelDirectory>, Error> {
    if !root.exists() {
        return Ok(Vec::new());
    }
    let mut models = Vec::new();
    for entry in fs::read_dir(root).map_err(Error::file(root))? {
        let entry = entry.map_err(Error::file(root))?;
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        models.extend(ModelDirectory::open(&entry.path()));
    }
    models.sort_by(|a, b| a.manifest.name.cmp(&b.manifest.name));
    Ok(models)
}
