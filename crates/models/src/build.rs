//! From source files to a model directory.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use memfleet_encoder::{Encoder, ModelFiles, Spec, compact_tokenizer};
use safetensors::{View, serialize_to_file};

use crate::directory::ModelDirectory;
use crate::error::Error;
use crate::export::{Exporter, Precision};
use crate::manifest::{
    COMPACT_TOKENIZER, MODEL, MODEL_DATA, Manifest, Normalisation, REFERENCE, TOKENIZER,
};
use crate::reference::Reference;
use crate::registry::KnownModel;
use crate::{calibration, export, hash};

/// File name of a checkpoint.
pub(crate) const WEIGHTS: &str = "model.safetensors";
/// File name of its architecture.
pub(crate) const CONFIGURATION: &str = "config.json";

/// Names what the exporter computes; changed whenever its vectors change.
pub(crate) const RECIPE: &str = "int8-3";

/// Makes the model directory `target`, which exists and is empty, of a folder with the source files.
pub(crate) fn build(
    model: &KnownModel,
    source: &Path,
    target: &Path,
) -> Result<ModelDirectory, Error> {
    let tokenizer = tokenizers(source, target)?;
    let full = target.join("full-precision.onnx");
    let exporter = Exporter::open(&source.join(WEIGHTS), &source.join(CONFIGURATION))?;
    exporter.write(&full, Precision::Float)?;
    let ranges = {
        let files = ModelFiles {
            model: full.clone(),
            tokenizer,
        };
        let encoder = Encoder::open(&files, spec(model), NonZeroUsize::MIN)?;
        Reference::compute(&encoder)?.write(&target.join(REFERENCE))?;
        calibration::measure(&encoder, &exporter.products())?
    };
    fs::remove_file(&full).map_err(Error::file(&full))?;
    exporter.write(&target.join(MODEL), Precision::Integer(&ranges))?;
    let mut files = BTreeMap::new();
    for name in [MODEL, MODEL_DATA, TOKENIZER, COMPACT_TOKENIZER, REFERENCE] {
        let path = target.join(name);
        if path.exists() {
            files.insert(name.to_owned(), hash::file(&path)?);
        }
    }
    manifest(model, files).write(target)?;
    ModelDirectory::open(target)
}

/// Writes tensors as the checkpoint of a folder.
pub(crate) fn write_checkpoint(
    tensors: impl IntoIterator<Item = (String, impl View)>,
    folder: &Path,
) -> Result<(), Error> {
    let path = folder.join(WEIGHTS);
    let written = serialize_to_file(tensors, None, &path);
    written.map_err(|error| {
        let reason = error.to_string();
        Error::Export(export::Error::Write { path, reason })
    })
}

/// Puts the tokenizer and its compact form, if it has one, into the directory; gives the path of
/// the one that is to be used.
fn tokenizers(source: &Path, target: &Path) -> Result<PathBuf, Error> {
    let tokenizer = target.join(TOKENIZER);
    fs::copy(source.join(TOKENIZER), &tokenizer).map_err(Error::file(&tokenizer))?;
    let Some(bytes) = compact_tokenizer(&tokenizer)? else {
        return Ok(tokenizer);
    };
    let compact = target.join(COMPACT_TOKENIZER);
    fs::write(&compact, bytes).map_err(Error::file(&compact))?;
    Ok(compact)
}

fn spec(model: &KnownModel) -> Spec {
    let pooling = model.pooling.into();
    Spec {
        max_tokens: model.max_tokens,
        dimensions: model.dimensions,
        pooling,
    }
}

fn manifest(model: &KnownModel, files: BTreeMap<String, String>) -> Manifest {
    Manifest {
        name: model.name.clone(),
        revision: model.revision.clone(),
        recipe: RECIPE.to_owned(),
        dimensions: model.dimensions,
        pooling: model.pooling,
        normalisation: Normalisation::Unit,
        max_tokens: model.max_tokens,
        query_prefix: model.query_prefix.clone(),
        passage_prefix: model.passage_prefix.clone(),
        licence: model.licence.clone(),
        files,
    }
}
