//! `memfleet bench`: what every claim about speed and quality rests on. Each measurement goes through the public API, as a
//! user's calls do: of a node that it starts in this process on a temporary store, or of a system that runs already.

mod answers;
mod arms;
mod assemble;
mod changes;
mod connections;
mod consolidation;
mod constraints;
mod encoder;
mod fit;
mod gates;
mod ingest;
mod latency;
mod load;
mod needs;
mod neighbours;
mod once;
mod process;
mod relevance;
mod report;
mod retrieval;
mod scale;
mod stopping;
mod synthetic;
mod topics;
mod understanding;
mod updates;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use memfleet_consolidator::Mode;
use memfleet_domain::Fault;
use memfleet_domain::ids::SpaceId;
use memfleet_domain::quality::SearchQuality;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge::Stage;
use memfleet_ports::refresher::ForgetRequest;
use memfleet_ports::retriever::Query;
use memfleet_runtime::BoxError;
use memfleet_runtime::config::Validate;
use serde::Serialize;
use stopping::StopRequest;

use crate::cli::{Error, Exit, Global, Handle};
use crate::config::Config;
use crate::models::ConfiguredModels;
use crate::node::{Background, Node, temporary};
use crate::output::Output;

/// Measure retrieval quality, ingestion and scale on a temporary node, and load and quality on a system that runs
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
    /// Set the coefficients of a hit's relevance, and show how far a threshold on it can be trusted
    Relevance(relevance::RelevanceArgs),
    /// Turns a second, time to searchable, disk and memory a turn
    Ingest(ingest::IngestArgs),
    /// Word pieces a second of the embedding model beside the machine's limit and ONNX Runtime
    Encoder(encoder::EncoderArgs),
    /// Search latency and memory as a space grows
    Scale(scale::ScaleArgs),
    /// Latency of an assembly by stage as a space grows, and what gates cost of the evidence
    Assemble(assemble::AssembleArgs),
    /// Whether memory stays current where facts change
    Updates(updates::UpdatesArgs),
    /// Order of values that hold and those that they ended, on scenarios by independent writers
    Changes(changes::ChangesArgs),
    /// Answers without a language model, on the questions of scenarios by independent writers
    Answers(answers::AnswersArgs),
    /// Whether all that was asked of a task is found in a long chat about many
    Constraints(constraints::ConstraintsArgs),
    /// Whether the turns that connect two people or things are found
    Connections(connections::ConnectionsArgs),
    /// How fast what was said becomes narratives and a graph
    Consolidation(consolidation::ConsolidationArgs),
    /// How often the gates before the search skip what needs memory, and let pass what does not
    Gates(gates::GatesArgs),
    /// How well the reader tells statements, relations and needs on text that it was not trained on
    Understanding(understanding::UnderstandingArgs),
    /// Which prompts get memory, and whether they get what they need, by gates and thresholds
    Needs(needs::NeedsArgs),
    /// How well embedding models tell which statements belong to a topic of a policy
    Topics(topics::TopicsArgs),
    /// A running node or fleet under concurrent callers, alone or beside a second one
    Load(load::LoadArgs),
    /// What one tenant's calls take beside another that behaves badly, and whether that is within bounds (exit code 1 where it is not)
    Neighbours(neighbours::NeighboursArgs),
}

/// Runs the command.
pub async fn run(
    args: BenchArgs,
    models: impl Fn() -> Result<ConfiguredModels, Error>,
    global: &Global,
    output: &mut Output,
) -> Result<Exit, Error> {
    match args.what {
        What::Retrieval(args) => {
            let stop = StopRequest::listen()?;
            let report = match args.remote {
                true => retrieval::measure_remote(&args, global, &stop).await?,
                false => retrieval::measure_files(&args, &models()?, &stop).await?,
            };
            let done = deliver(&report, args.out, output, || report.table())?;
            Ok(stop.exit().unwrap_or(done))
        }
        What::Fit(args) => {
            let report = fit::measure(&args, &models()?).await?;
            deliver(&report, args.out, output, || report.table())
        }
        What::Relevance(args) => {
            let report = relevance::measure(&args, &models()?).await?;
            deliver(&report, args.out, output, || report.table())
        }
        What::Ingest(args) => {
            let report = ingest::measure(&args, &models()?).await?;
            deliver(&report, args.out, output, || report.table())
        }
        What::Encoder(args) => {
            let report = encoder::measure(&args, &models()?.main)?;
            deliver(&report, args.out, output, || report.table())
        }
        What::Scale(args) => {
            let report = scale::measure(&args, &models()?).await?;
            deliver(&report, args.out, output, || report.table())
        }
        What::Assemble(args) => {
            let report = assemble::measure(&args, &models()?).await?;
            deliver(&report, args.out, output, || report.table())
        }
        What::Updates(args) => {
            let report = updates::measure(&args, &models()?).await?;
            deliver(&report, args.out, output, || report.table())
        }
        What::Changes(args) => {
            let report = changes::measure(&args, &models()?).await?;
            deliver(&report, args.out, output, || report.table())
        }
        What::Answers(args) => {
            let report = answers::measure(&args, &models()?).await?;
            deliver(&report, args.out, output, || report.table())
        }
        What::Constraints(args) => {
            let report = constraints::measure(&args, &models()?).await?;
            deliver(&report, args.out, output, || report.table())
        }
        What::Connections(args) => {
            let report = connections::measure(&args, &models()?).await?;
            deliver(&report, args.out, output, || report.table())
        }
        What::Consolidation(args) => {
            let report = consolidation::measure(&args, &models()?).await?;
            deliver(&report, args.out, output, || report.table())
        }
        What::Gates(args) => {
            let report = gates::measure(&args, &models()?.main)?;
            deliver(&report, args.out, output, || report.table())
        }
        What::Understanding(args) => {
            let report = understanding::measure(&args, &models()?)?;
            deliver(&report, args.out, output, || report.table())
        }
        What::Needs(args) => {
            let report = needs::measure(&args, &models()?).await?;
            deliver(&report, args.out, output, || report.table())
        }
        What::Topics(args) => {
            let report = topics::measure(&args, &models()?).await?;
            deliver(&report, args.out, output, || report.table())
        }
        What::Load(args) => {
            let report = load::measure(&args, global).await?;
            deliver(&report, args.out, output, || report.table())
        }
        What::Neighbours(args) => {
            let report = neighbours::measure(&args, global).await?;
            deliver(&report, args.out, output, || report.table())?;
            Ok(match report.is_within {
                true => Exit::Done,
                false => Exit::Failed,
            })
        }
    }
}

/// A node on a store that goes with it.
struct Bench {
    node: Node,
    workers: Background,
    directory: tempfile::TempDir,
}

impl Bench {
    async fn start(models: &ConfiguredModels) -> Result<Self, BoxError> {
        Self::start_with(models, &Stage::ALL, Mode::default()).await
    }

    /// With some of the agents only, and narratives that are put together as this says.
    async fn start_with(
        models: &ConfiguredModels,
        agents: &[Stage],
        consolidation: Mode,
    ) -> Result<Self, BoxError> {
        let configure = |config: &mut Config| config.consolidator.mode = consolidation;
        Self::start_configured(models, agents, configure).await
    }

    /// Starts a node whose spaces get the vectors that searches of this quality need.
    async fn start_searching(
        models: &ConfiguredModels,
        quality: SearchQuality,
    ) -> Result<Self, BoxError> {
        let configure = |config: &mut Config| config.retrieval.quality = quality;
        Self::start_configured(models, &Stage::ALL, configure).await
    }

    async fn start_configured(
        models: &ConfiguredModels,
        agents: &[Stage],
        configure: impl FnOnce(&mut Config),
    ) -> Result<Self, BoxError> {
        let directory = tempfile::tempdir()?;
        let mut config = temporary(directory.path(), models);
        configure(&mut config);
        if let Some(problem) = config.problems().first() {
            return Err(format!("{}: {}", problem.key, problem.message).into());
        }
        let node = Node::open(&config, models).await?;
        let workers = node.run_with(agents);
        Ok(Self {
            node,
            workers,
            directory,
        })
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Waits until the agents have worked through everything that is stored.
    async fn derived(&self, agents: &[Stage]) -> Result<(), BoxError> {
        let knowledge = &self.node.gateway.knowledge;
        // These work where there is a model, or where they are asked to.
        let is_idle = |stage: &Stage| stage.asks_model() || *stage == Stage::Rebuild;
        loop {
            let mut waiting = 0;
            for stage in agents.iter().filter(|stage| !is_idle(stage)) {
                waiting += knowledge.pending(*stage, 1).await?.len();
            }
            if waiting == 0 {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until all spaces have the vectors of a second model, where one is ordered.
    async fn embedded_twice(&self) -> Result<(), BoxError> {
        let switches = &self.node.gateway.switches;
        while let Some(order) = switches.order().await? {
            let progress = switches.progress(&order).await?;
            let is_whole = progress.compared + progress.serving == progress.spaces;
            if is_whole && progress.done == progress.turns {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    async fn stop(self) {
        self.workers.stop().await;
    }
}

/// A search of one space, without any condition.
fn query(space: &SpaceId, text: String, k: u32) -> Query {
    Query {
        text,
        spaces: vec![space.clone()],
        filter: TurnFilter::default(),
        k,
        neighbours: 0,
        now: None,
        session: None,
        intent: None,
        explain: false,
        quality: None,
        vectors: None,
    }
}

/// A share in percent; of nothing it is none.
fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// Removes a space of a system that runs on.
async fn forget(handle: &Handle, space: SpaceId) -> Result<(), Fault> {
    let request = ForgetRequest {
        space,
        filter: TurnFilter::default(),
        everything: true,
        dry_run: false,
    };
    let (memory, call) = (&handle.memory, handle.long_call());
    memory.forget(&call, request).await.map(drop)
}

/// Prints a report, and writes it as JSON to the file that was named.
fn deliver<R: Serialize>(
    report: &R,
    to: Option<PathBuf>,
    output: &mut Output,
    table: impl FnOnce() -> String,
) -> Result<Exit, Error> {
    output.answer(|| report, |_| table())?;
    // With `--json` alone the value is the sign for standard output, and all is said.
    if let Some(path) = to.filter(|_| !output.is_json()) {
        let text = serde_json::to_string_pretty(report).map_err(BoxError::from)?;
        std::fs::write(&path, text).map_err(Error::file(path))?;
    }
    Ok(Exit::Done)
}
