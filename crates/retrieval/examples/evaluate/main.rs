//! Recall and coverage of the retrieval core on data sets with annotated evidence, and what each signal is worth:
//! `cargo run --release -p memfleet-retrieval --example evaluate -- --cache DIR FILE…`

mod cache;
mod report;
mod space;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Parser;
use memfleet_evaluation::{Conversation, Dataset};
use memfleet_models::{DEFAULT_MODEL, ModelDirectory, default_root};
use memfleet_retrieval::{Signal, Weights};

use cache::VectorCache;
use report::Report;
use space::Space;

/// Options of the evaluation.
#[derive(Parser)]
struct Options {
    /// Data sets in the LoCoMo format or the plain format.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Folder in which vectors are kept, so that a second run needs no model.
    #[arg(long)]
    cache: PathBuf,
    /// Folder of the model; default: where `memfleet model pull` puts the default model.
    #[arg(long)]
    model: Option<PathBuf>,
    /// Weights to use instead of the shipped ones.
    #[arg(long)]
    weights: Option<PathBuf>,
    /// All conversations of a file in one space, too.
    #[arg(long)]
    pooled: bool,
    /// The loss without each signal, too.
    #[arg(long)]
    ablate: bool,
    /// Signals to leave out.
    #[arg(long, value_delimiter = ',')]
    without: Vec<String>,
    /// Passages of the first stage instead of the weights' own.
    #[arg(long)]
    candidates: Option<usize>,
    /// Figures by category.
    #[arg(long)]
    categories: bool,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let weights = weights(&options)?;
    let model = model(&options)?;
    for file in &options.files {
        let dataset = Dataset::load(file).with_context(|| file.display().to_string())?;
        let stem = file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let mut cache =
            VectorCache::open(options.cache.join(format!("{stem}.vectors")), model.clone())?;
        println!(
            "{stem}: {} conversations, {} turns, {} questions",
            dataset.conversations.len(),
            dataset.turns(),
            dataset.questions()
        );
        let all: Vec<&Conversation> = dataset.conversations.iter().collect();
        let alone: Vec<Vec<&Conversation>> =
            all.iter().map(|&conversation| vec![conversation]).collect();
        run(
            "each conversation alone",
            &alone,
            &options,
            &weights,
            &mut cache,
        )?;
        if options.pooled && all.len() > 1 {
            run("all in one space", &[all], &options, &weights, &mut cache)?;
        }
    }
    Ok(())
}

/// Evaluates one way of putting conversations into spaces.
fn run(
    name: &str,
    groups: &[Vec<&Conversation>],
    options: &Options,
    weights: &Weights,
    cache: &mut VectorCache,
) -> Result<()> {
    let started = Instant::now();
    let spaces = groups
        .iter()
        .map(|group| Space::build(group, cache))
        .collect::<Result<Vec<_>>>()?;
    let built = started.elapsed();
    let full = Report::of(&spaces, weights);
    println!(
        "{name} (built in {:.1} s, {} bytes a turn)",
        built.as_secs_f32(),
        full.bytes_a_turn
    );
    full.print(options.categories);
    if options.ablate {
        for signal in Signal::ALL
            .into_iter()
            .filter(|&signal| weights.of(signal) != 0.0)
        {
            let mut reduced = weights.clone();
            reduced.signals.remove(&signal);
            Report::of(&spaces, &reduced).print_loss(signal.name(), &full);
        }
    }
    Ok(())
}

fn weights(options: &Options) -> Result<Weights> {
    let mut weights = match &options.weights {
        Some(path) => Weights::from_toml(&std::fs::read_to_string(path)?)?,
        None => Weights::shipped(),
    };
    weights
        .signals
        .retain(|signal, _| !options.without.iter().any(|name| name == signal.name()));
    weights.candidates = options.candidates.unwrap_or(weights.candidates);
    Ok(weights)
}

fn model(options: &Options) -> Result<Option<(ModelDirectory, NonZeroUsize)>> {
    let path = match &options.model {
        Some(path) => path.clone(),
        None => default_root()?.join(DEFAULT_MODEL),
    };
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    Ok(ModelDirectory::open(&path)
        .ok()
        .map(|model| (model, threads)))
}
