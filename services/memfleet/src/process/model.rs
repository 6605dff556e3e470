//! The embedder role on the configured model.

use std::num::NonZeroUsize;

use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_embedder::{LocalEmbedder, SentenceModel};
use memfleet_encoder::projection::Projection;
use memfleet_models::ModelDirectory;
use memfleet_runtime::BoxError;

use crate::config::Model;

/// Loads the model and starts its workers.
pub fn embedder(config: &Model, model: &ModelDirectory) -> Result<LocalEmbedder, BoxError> {
    let threads =
        NonZeroUsize::new(config.threads).map_or_else(std::thread::available_parallelism, Ok)?;
    let manifest = model.manifest();
    let projection = Projection::shipped(&manifest.name).ok_or_else(|| {
        format!("model.name `{}`: no projection of its token vectors is known; `memfleet model list` names the models that have one", manifest.name)
    })?;
    let (query_prefix, passage_prefix) = (
        manifest.query_prefix.clone(),
        manifest.passage_prefix.clone(),
    );
    let space = EmbeddingSpace {
        model: manifest.name.clone(),
        revision: manifest.revision.clone(),
        recipe: manifest.recipe.clone(),
        projection: projection.fingerprint(),
    };
    let model = SentenceModel {
        encoder: model.load(threads)?,
        projection,
        query_prefix,
        passage_prefix,
    };
    Ok(LocalEmbedder::start(space, model, config.queue)?)
}
