//! A node: every role in this process over one SQLite file.

use std::path::Path;
use std::sync::Arc;

use memfleet_gateway::Gateway;
use memfleet_ports::knowledge::Stage;
use memfleet_ports::retriever::Retriever;
use memfleet_retrieval::{ModelCalibrations, Weights};
use memfleet_runtime::BoxError;
use memfleet_runtime::lifecycle::{Lifecycle, Signals, StopReason};
use memfleet_runtime::telemetry::Readiness;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, Retrieval};
use crate::models::ConfiguredModels;
use crate::process::Process;
use crate::role::Role;

/// The roles of a node.
pub struct Node {
    /// The public API.
    pub gateway: Arc<Gateway>,
    process: Process,
}

impl Node {
    /// Opens the store and the models, and connects the roles. Nothing runs yet.
    pub async fn open(config: &Config, models: &ConfiguredModels) -> Result<Self, BoxError> {
        let process = Process::compose(
            config,
            &Role::ALL,
            Some(models),
            ModelCalibrations::for_measuring(),
            &Readiness::default(),
        )
        .await?;
        let gateway = process.gateway.clone().expect("it is one of all roles");
        Ok(Self { gateway, process })
    }

    /// Another retriever over the same memory, for measuring other weights.
    pub fn retriever(&self, weights: Weights) -> Arc<dyn Retriever> {
        let embedder = self.gateway.embedder.clone();
        let retriever = self.process.new_retriever(
            embedder,
            &Retrieval::default(),
            ModelCalibrations::of_every_model(weights),
        );
        Arc::new(retriever)
    }

    /// Runs the workers in the background of a command; they end with the answer's [`Background::stop`].
    pub fn run_in_background(&self) -> Background {
        self.run_with(&Stage::ALL)
    }

    /// The same with some of the agents only, for measuring what the others are worth.
    pub fn run_with(&self, agents: &[Stage]) -> Background {
        let mut process = Lifecycle::new(&memfleet_runtime::lifecycle::Options::default());
        self.process.spawn_with(agents, &mut process);
        let stop = process.stop_token();
        let task = tokio::spawn(async move {
            process.run(Unsignalled).await;
        });
        Background { stop, task }
    }

    /// Works through all that an agent is behind with, for measuring it alone: nobody else may do its work meanwhile.
    pub async fn work_off(&self, stage: Stage) {
        self.process.work_off(stage).await;
    }
}

/// The workers of a node inside a command.
pub struct Background {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Background {
    /// Stops the workers and waits for them.
    pub async fn stop(self) {
        self.stop.cancel();
        // A panic in a worker was logged by the lifecycle.
        let _ended = self.task.await;
    }
}

/// A command handles signals by ending.
struct Unsignalled;

impl Signals for Unsignalled {
    async fn next(&mut self) -> StopReason {
        std::future::pending().await
    }
}

/// Configuration of a node on a store of its own, for a command that needs one for a while. Without
/// the multilingual model it derives no facts.
pub fn temporary(directory: &Path, models: &ConfiguredModels) -> Config {
    let mut config = Config::default();
    if models.multilingual.is_none() {
        config.model.multilingual.clear();
    }
    config.store.url = format!("sqlite:{}", directory.join("memory.db").display()).into();
    config
}
