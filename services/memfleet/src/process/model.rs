//! The embedder role: the configured models, and others that are pulled. Each is loaded when its
//! vectors are first asked for, the default one at the start.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use memfleet_domain::embedding::{EmbeddingSpace, PassageVectors, QueryVectors};
use memfleet_domain::{Fault, FaultKind};
use memfleet_embedder::{LocalEmbedder, ModelChoice, SentenceModel};
use memfleet_encoder::Encoder;
use memfleet_encoder::projection::Projection;
use memfleet_models::ModelDirectory;
use memfleet_ports::embedder::{Embedder, missing_model, no_model};
use memfleet_retrieval::ModelCalibration;
use memfleet_runtime::BoxError;
use tokio::sync::OnceCell;

use crate::config::Model;
use crate::models::{ConfiguredModels, unknown_model};

/// A model that is loaded once.
type LoadedModel = Arc<OnceCell<RunningModel>>;

/// A model and its workers.
struct RunningModel {
    encoder: Arc<Encoder>,
    embedder: LocalEmbedder,
}

/// The models of a folder.
pub struct ModelSet {
    default: EmbeddingSpace,
    multilingual: Option<Multilingual>,
    folder: PathBuf,
    config: Model,
    loaded: Mutex<HashMap<EmbeddingSpace, LoadedModel>>,
}

/// The model of spaces whose texts the default one does not read.
struct Multilingual {
    space: EmbeddingSpace,
    choice: ModelChoice,
}

impl ModelSet {
    /// Loads the default model and starts its workers.
    pub fn open(config: &Model, models: &ConfiguredModels) -> Result<Self, BoxError> {
        let (default, model) = start(config, &models.main)?;
        let first = model.encoder.tokenizer().clone();
        let loaded = Arc::new(OnceCell::new_with(Some(model)));
        let multilingual = models.multilingual.as_ref().map(|second| {
            let choice = ModelChoice {
                first,
                second: Arc::new(second.tokenizer()?),
            };
            let space = space(second)?;
            Ok::<_, BoxError>(Multilingual { space, choice })
        });
        Ok(Self {
            multilingual: multilingual.transpose()?,
            folder: models.folder(),
            config: config.clone(),
            loaded: Mutex::new([(default.clone(), loaded)].into()),
            default,
        })
    }

    /// The encoder of a configured model, loaded unless it is here; its vectors come from the same.
    pub async fn encoder_of(&self, name: &str, revision: &str) -> Result<Arc<Encoder>, Fault> {
        let configured = [&*self.config.name, &*self.config.multilingual];
        if !configured.contains(&name) {
            return Err(missing_model(name));
        }
        let (_, space) = self.find(name).await?;
        if space.revision != revision {
            return Err(missing_model(name));
        }
        let model = self.model(&space).await?;
        Ok(model.get().expect("it is loaded").encoder.clone())
    }

    /// The folder of a model that is pulled, and where its vectors live.
    async fn find(&self, name: &str) -> Result<(ModelDirectory, EmbeddingSpace), Fault> {
        let (folder, wanted) = (self.folder.clone(), name.to_owned());
        let found = tokio::task::spawn_blocking(move || {
            let models = memfleet_models::list(&folder).unwrap_or_default();
            let mut models = models.into_iter();
            let model = models.find(|model| model.manifest().name == wanted)?;
            let space = space(&model).ok()?;
            Some((model, space))
        });
        let found = found.await.ok().flatten();
        found.ok_or_else(|| missing_model(name))
    }

    /// The model of an embedding space, loaded unless it is here.
    async fn model(&self, space: &EmbeddingSpace) -> Result<LoadedModel, Fault> {
        let model = {
            let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
            loaded.entry(space.clone()).or_default().clone()
        };
        if model.initialized() {
            return Ok(model);
        }
        let (directory, found) = self.find(&space.model).await?;
        if found != *space {
            return Err(no_model(space));
        }
        let (cell, config) = (model.clone(), self.config.clone());
        // A task of its own: a caller who hangs up does not stop what others wait for.
        let loading = tokio::spawn(async move {
            let loaded = cell.get_or_try_init(|| load(config, directory)).await;
            loaded.map(|_| ())
        });
        let stopped = |_| Fault::internal("loading a model stopped");
        loading.await.map_err(stopped)??;
        Ok(model)
    }
}

/// Loads a model and starts its workers, on a thread of its own.
async fn load(config: Model, directory: ModelDirectory) -> Result<RunningModel, Fault> {
    let loaded = tokio::task::spawn_blocking(move || {
        start(&config, &directory).map_err(|error| error.to_string())
    });
    match loaded.await {
        Ok(Ok((space, model))) => {
            tracing::info!(%space, "loaded another model");
            Ok(model)
        }
        Ok(Err(error)) => {
            tracing::error!(error, "a model could not be loaded");
            let message = "a model could not be loaded: the log says why";
            Err(Fault::new(
                FaultKind::Unavailable,
                "EMBEDDER_UNAVAILABLE",
                message,
            ))
        }
        Err(_) => Err(Fault::internal("loading a model stopped")),
    }
}

#[async_trait]
impl Embedder for ModelSet {
    async fn space(&self) -> Result<EmbeddingSpace, Fault> {
        Ok(self.default.clone())
    }

    async fn embed_passages(&self, texts: Vec<String>) -> Result<Vec<PassageVectors>, Fault> {
        self.embed_passages_in(&self.default, texts).await
    }

    async fn embed_query(&self, text: String) -> Result<QueryVectors, Fault> {
        self.embed_query_in(&self.default, text).await
    }

    async fn embed_passages_in(
        &self,
        space: &EmbeddingSpace,
        texts: Vec<String>,
    ) -> Result<Vec<PassageVectors>, Fault> {
        let model = self.model(space).await?;
        let model = model.get().expect("it is loaded");
        model.embedder.embed_passages(texts).await
    }

    async fn embed_query_in(
        &self,
        space: &EmbeddingSpace,
        text: String,
    ) -> Result<QueryVectors, Fault> {
        let model = self.model(space).await?;
        let model = model.get().expect("it is loaded");
        model.embedder.embed_query(text).await
    }

    async fn space_of(&self, model: &str) -> Result<EmbeddingSpace, Fault> {
        if let Some(message) = unknown_model(model) {
            let kind = FaultKind::FailedPrecondition;
            return Err(Fault::new(kind, "MODEL_MISSING", message));
        }
        let calibration = ModelCalibration::shipped(model);
        let calibration = calibration.ok_or_else(|| uncalibrated(model))?;
        let (_, space) = self.find(model).await?;
        if !calibration.is_of(&space.revision) {
            return Err(uncalibrated(model));
        }
        Ok(space)
    }

    async fn space_for(&self, texts: &[String]) -> Result<EmbeddingSpace, Fault> {
        let Some(Multilingual { space, choice }) = &self.multilingual else {
            return Ok(self.default.clone());
        };
        let is_second = choice.is_second(texts.iter().map(String::as_str));
        let is_second = is_second.map_err(|error| Fault::internal(error.to_string()))?;
        Ok(if is_second { space } else { &self.default }.clone())
    }
}

fn uncalibrated(model: &str) -> Fault {
    let message =
        format!("model `{model}` has no calibration in this version, so no search uses it");
    Fault::new(
        FaultKind::FailedPrecondition,
        "MODEL_NOT_CALIBRATED",
        message,
    )
}

/// Reads a model's files and starts its workers.
fn start(
    config: &Model,
    model: &ModelDirectory,
) -> Result<(EmbeddingSpace, RunningModel), BoxError> {
    let threads =
        NonZeroUsize::new(config.threads).map_or_else(std::thread::available_parallelism, Ok)?;
    let encoder = Arc::new(model.load(threads)?);
    let manifest = model.manifest();
    let space = space(model)?;
    let model = SentenceModel {
        encoder: encoder.clone(),
        projection: projection(model)?,
        query_prefix: manifest.query_prefix.clone(),
        passage_prefix: manifest.passage_prefix.clone(),
    };
    let embedder = LocalEmbedder::start(space.clone(), model, config.queue)?;
    Ok((space, RunningModel { encoder, embedder }))
}

fn projection(model: &ModelDirectory) -> Result<Projection, String> {
    let name = &model.manifest().name;
    Projection::shipped(name).ok_or_else(|| {
        format!("model.name `{name}`: no projection of its token vectors is known; `memfleet model list` names the models that have one")
    })
}

fn space(model: &ModelDirectory) -> Result<EmbeddingSpace, String> {
    let manifest = model.manifest();
    Ok(EmbeddingSpace {
        model: manifest.name.clone(),
        revision: manifest.revision.clone(),
        recipe: manifest.recipe.clone(),
        projection: projection(model)?.fingerprint(),
    })
}
