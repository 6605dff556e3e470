//! The embedder role: the configured model, and others that are pulled, which are loaded when their
//! vectors are asked for.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use memfleet_domain::embedding::{EmbeddingSpace, PassageVectors, QueryVectors};
use memfleet_domain::{Fault, FaultKind};
use memfleet_embedder::{LocalEmbedder, SentenceModel};
use memfleet_encoder::projection::Projection;
use memfleet_models::ModelDirectory;
use memfleet_ports::embedder::{Embedder, missing_model, no_model};
use memfleet_runtime::BoxError;
use tokio::sync::OnceCell;

use crate::config::Model;

/// Loads the configured model and starts its workers.
pub fn embedder(config: &Model, model: &ModelDirectory) -> Result<ModelSet, BoxError> {
    let (space, default) = load(config, model)?;
    Ok(ModelSet {
        space,
        default,
        folder: model.path().parent().map(PathBuf::from).unwrap_or_default(),
        config: config.clone(),
        others: Mutex::default(),
    })
}

fn load(
    config: &Model,
    model: &ModelDirectory,
) -> Result<(EmbeddingSpace, LocalEmbedder), BoxError> {
    let threads =
        NonZeroUsize::new(config.threads).map_or_else(std::thread::available_parallelism, Ok)?;
    let manifest = model.manifest();
    let projection = projection(model)?;
    let (query_prefix, passage_prefix) = (
        manifest.query_prefix.clone(),
        manifest.passage_prefix.clone(),
    );
    let space = space(model, &projection);
    let model = SentenceModel {
        encoder: model.load(threads)?,
        projection,
        query_prefix,
        passage_prefix,
    };
    let embedder = LocalEmbedder::start(space.clone(), model, config.queue)?;
    Ok((space, embedder))
}

fn projection(model: &ModelDirectory) -> Result<Projection, String> {
    let name = &model.manifest().name;
    Projection::shipped(name).ok_or_else(|| {
        format!("model.name `{name}`: no projection of its token vectors is known; `memfleet model list` names the models that have one")
    })
}

fn space(model: &ModelDirectory, projection: &Projection) -> EmbeddingSpace {
    let manifest = model.manifest();
    EmbeddingSpace {
        model: manifest.name.clone(),
        revision: manifest.revision.clone(),
        recipe: manifest.recipe.clone(),
        projection: projection.fingerprint(),
    }
}

/// A model beside the configured one; it is loaded once.
type LoadedModel = Arc<OnceCell<LocalEmbedder>>;

/// The models of a folder: the configured one, and others from the first time on that their vectors
/// are asked for.
pub struct ModelSet {
    space: EmbeddingSpace,
    default: LocalEmbedder,
    folder: PathBuf,
    config: Model,
    others: Mutex<HashMap<EmbeddingSpace, LoadedModel>>,
}

impl ModelSet {
    /// The folder of a model that is pulled, and where its vectors live.
    async fn find(&self, name: &str) -> Result<(ModelDirectory, EmbeddingSpace), Fault> {
        let (folder, wanted) = (self.folder.clone(), name.to_owned());
        let found = tokio::task::spawn_blocking(move || {
            let models = memfleet_models::list(&folder).unwrap_or_default();
            let model = models
                .into_iter()
                .find(|model| model.manifest().name == wanted)?;
            let projection = projection(&model).ok()?;
            let space = space(&model, &projection);
            Some((model, space))
        });
        let found = found.await.ok().flatten();
        found.ok_or_else(|| missing_model(name))
    }

    fn other(&self, space: &EmbeddingSpace) -> LoadedModel {
        self.others().entry(space.clone()).or_default().clone()
    }

    fn others(&self) -> MutexGuard<'_, HashMap<EmbeddingSpace, LoadedModel>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loads the model of an embedding space, unless it is here.
    async fn load_into(&self, model: &LoadedModel, space: &EmbeddingSpace) -> Result<(), Fault> {
        let loading = async || {
            let (directory, found) = self.find(&space.model).await?;
            if found != *space {
                return Err(no_model(space));
            }
            let config = self.config.clone();
            let loaded = tokio::task::spawn_blocking(move || {
                load(&config, &directory).map_err(|error| error.to_string())
            });
            match loaded.await {
                Ok(Ok((_, embedder))) => {
                    tracing::info!(%space, "loaded another model");
                    Ok(embedder)
                }
                Ok(Err(error)) => {
                    tracing::error!(%space, error, "a model could not be loaded");
                    let message = "a model could not be loaded: the log says why";
                    Err(Fault::new(
                        FaultKind::Unavailable,
                        "EMBEDDER_UNAVAILABLE",
                        message,
                    ))
                }
                Err(_) => Err(Fault::internal("loading a model stopped")),
            }
        };
        model.get_or_try_init(loading).await.map(drop)
    }
}

#[async_trait]
impl Embedder for ModelSet {
    async fn space(&self) -> Result<EmbeddingSpace, Fault> {
        Ok(self.space.clone())
    }

    async fn embed_passages(&self, texts: Vec<String>) -> Result<Vec<PassageVectors>, Fault> {
        self.default.embed_passages(texts).await
    }

    async fn embed_query(&self, text: String) -> Result<QueryVectors, Fault> {
        self.default.embed_query(text).await
    }

    async fn embed_passages_in(
        &self,
        space: &EmbeddingSpace,
        texts: Vec<String>,
    ) -> Result<Vec<PassageVectors>, Fault> {
        if *space == self.space {
            return self.default.embed_passages(texts).await;
        }
        let model = self.other(space);
        self.load_into(&model, space).await?;
        let model = model.get().expect("it was just loaded");
        model.embed_passages_in(space, texts).await
    }

    async fn embed_query_in(
        &self,
        space: &EmbeddingSpace,
        text: String,
    ) -> Result<QueryVectors, Fault> {
        if *space == self.space {
            return self.default.embed_query(text).await;
        }
        let model = self.other(space);
        self.load_into(&model, space).await?;
        let model = model.get().expect("it was just loaded");
        model.embed_query_in(space, text).await
    }

    async fn space_of(&self, model: &str) -> Result<EmbeddingSpace, Fault> {
        if self.space.model == model {
            return Ok(self.space.clone());
        }
        Ok(self.find(model).await?.1)
    }
}
