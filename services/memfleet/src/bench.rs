//! `memfleet bench`: what every claim about speed and quality rests on. Each measurement starts a node in this process on a
//! temporary store and goes through the public API, as a user's calls do.

mod arms;
mod fit;
mod ingest;
mod latency;
mod once;
mod process;
mod report;
mod retrieval;
mod scale;
mod synthetic;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use memfleet_models::ModelDirectory;
use memfleet_runtime::BoxError;
use serde::Serialize;

use crate::node::{Background, Node, temporary};

/// Measure retrieval quality, ingestion and scale on a temporary node
#[derive(Debug, Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Recall and coverage on data sets with annotated evidence (LoCoMo or the plain format)
    Retrieval(retrieval::RetrievalArgs),
    /// Ablate every signal, and set the weights of the score by cross-validation over data sets
    Fit(fit::FitArgs),
    /// Turns a second, time to searchable, disk and memory a turn
    Ingest(ingest::IngestArgs),
    /// Search latency and memory as a space grows
    Scale(scale::ScaleArgs),
}

/// Runs the command. `json` prints the report as JSON on standard output.
pub async fn run(args: BenchArgs, model: ModelDirectory, json: bool) -> Result<(), BoxError> {
    match args.what {
        What::Retrieval(args) => retrieval::run(args, &model, json).await,
        What::Fit(args) => fit::run(args, &model, json).await,
        What::Ingest(args) => ingest::run(&args, &model, json).await,
        What::Scale(args) => scale::run(&args, &model, json).await,
    }
}

/// A node on a store that goes with it.
struct Bench {
    node: Node,
    workers: Background,
    directory: tempfile::TempDir,
}

impl Bench {
    async fn start(model: &ModelDirectory) -> Result<Self, BoxError> {
        let directory = tempfile::tempdir()?;
        let mut config = temporary(directory.path());
        // The bench measures a hundred thousand turns warm; a node's own default is smaller.
        config.retrieval.token_cache = memfleet_runtime::config::ByteSize::mebibytes(512);
        let node = Node::open(&config, model).await?;
        let workers = node.run_in_background();
        Ok(Self {
            node,
            workers,
            directory,
        })
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    async fn stop(self) {
        self.workers.stop().await;
    }
}

/// Writes a report where it was asked for.
fn deliver<R: Serialize>(
    report: &R,
    to: Option<&PathBuf>,
    json: bool,
    table: impl FnOnce() -> String,
) -> Result<(), BoxError> {
    let text = serde_json::to_string_pretty(report)?;
    if let Some(path) = to.filter(|_| !json) {
        std::fs::write(path, &text)?;
    }
    println!("{}", if json { text } else { table() });
    Ok(())
}
