//! The reader of turns over the models of this process, loaded when it is first asked.

use std::sync::Arc;

use async_trait::async_trait;
use memfleet_domain::statement::{RelationScores, Statement};
use memfleet_domain::{Fault, FaultKind};
use memfleet_embedder::LocalTurnReader;
use memfleet_encoder::Encoder;
use memfleet_ports::turn_reader::{
    NeedQuestion, PromptReading, ReaderAnswers, TurnComparison, TurnInContext, TurnReader,
    missing_reader,
};
use memfleet_understanding::ReaderModel;
use tokio::sync::OnceCell;

use super::model::ModelSet;

/// The reader of the program over its base among the models of a process. Absent while that model
/// is not configured or not pulled.
pub struct ModelReader {
    models: Arc<ModelSet>,
    /// Texts that may wait.
    capacity: usize,
    loaded: Arc<OnceCell<LocalTurnReader>>,
}

impl ModelReader {
    /// Creates a reader that is loaded when it is first asked.
    pub fn new(models: Arc<ModelSet>, capacity: usize) -> Self {
        Self {
            models,
            capacity,
            loaded: Arc::default(),
        }
    }

    /// The reader, loaded unless it is here.
    async fn reader(&self) -> Result<&LocalTurnReader, Fault> {
        if !self.loaded.initialized() {
            let base = self
                .models
                .encoder_of(ReaderModel::BASE, ReaderModel::BASE_REVISION)
                .await;
            let base = base.map_err(|fault| match &*fault.reason {
                "MODEL_MISSING" => missing_reader(ReaderModel::BASE),
                _ => fault,
            })?;
            let (cell, capacity) = (self.loaded.clone(), self.capacity);
            // A task of its own: a caller who hangs up does not stop what others wait for.
            let loading = tokio::spawn(async move {
                let loaded = cell.get_or_try_init(|| load(base, capacity)).await;
                loaded.map(|_| ())
            });
            let stopped = |_| Fault::internal("loading the reader of turns stopped");
            loading.await.map_err(stopped)??;
        }
        Ok(self.loaded.get().expect("it is loaded"))
    }
}

/// Loads the reader and starts its workers, on a thread of its own.
async fn load(base: Arc<Encoder>, capacity: usize) -> Result<LocalTurnReader, Fault> {
    let loaded = tokio::task::spawn_blocking(move || {
        let reader = ReaderModel::open(&base).map_err(|error| error.to_string())?;
        LocalTurnReader::start(reader, capacity).map_err(|error| error.to_string())
    });
    match loaded.await {
        Ok(Ok(reader)) => {
            tracing::info!(reader = ReaderModel::NAME, "loaded the reader of turns");
            Ok(reader)
        }
        Ok(Err(error)) => {
            tracing::error!(error, "the reader of turns could not be loaded");
            let message = "the reader of turns could not be loaded: the log says why";
            let kind = FaultKind::Unavailable;
            Err(Fault::new(kind, "READER_UNAVAILABLE", message))
        }
        Err(_) => Err(Fault::internal("loading the reader of turns stopped")),
    }
}

#[async_trait]
impl TurnReader for ModelReader {
    async fn statements(
        &self,
        turns: Vec<TurnInContext>,
    ) -> Result<ReaderAnswers<Vec<Statement>>, Fault> {
        self.reader().await?.statements(turns).await
    }

    async fn relations(
        &self,
        pairs: Vec<TurnComparison>,
    ) -> Result<ReaderAnswers<Vec<RelationScores>>, Fault> {
        self.reader().await?.relations(pairs).await
    }

    async fn needs(&self, question: NeedQuestion) -> Result<PromptReading, Fault> {
        self.reader().await?.needs(question).await
    }
}

#[cfg(test)]
mod tests;
