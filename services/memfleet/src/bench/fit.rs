//! `memfleet bench fit`: what each signal of the score is worth, and which weights questions with known evidence ask for.
//!
//! Every question is asked once with a score breakdown; other weights are then other sums of the same numbers. Three answers
//! say how far better weights can be believed: fitted on all questions (an upper bound), on the other conversations (leave one
//! out), and on the other files.

mod report;

use std::path::PathBuf;

use clap::Args;
use memfleet_domain::ids::TurnId;
use memfleet_evaluation::fit::{Example, ascend};
use memfleet_evaluation::{Dataset, Question};
use memfleet_gateway::Gateway;
use memfleet_models::ModelDirectory;
use memfleet_ports::memory::{Memory, RecallRequest};
use memfleet_ports::retriever::{Hit, Query};
use memfleet_retrieval::{Signal, Weights};
use memfleet_runtime::BoxError;

use super::Bench;
use super::retrieval::{progress, query};
use crate::corpus::{Corpus, call};
use report::{Report, Trial};

/// Turns of a breakdown; larger spaces are fitted on their best turns.
const DEPTH: u32 = 1_000;

/// Arguments.
#[derive(Debug, Args)]
pub struct FitArgs {
    /// Data sets with annotated evidence; each counts the same, however many questions it has
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write the weights fitted on all questions to this file, in the form of crates/retrieval/data/weights.toml
    #[arg(long, value_name = "FILE")]
    weights: Option<PathBuf>,
    /// Write the report as JSON to this file
    #[arg(id = "json", long = "json", value_name = "OUT")]
    pub out: Option<PathBuf>,
}

/// A file's conversations, each with its questions.
pub struct File {
    name: String,
    conversations: Vec<Vec<Example>>,
}

impl File {
    fn examples(&self) -> impl Iterator<Item = &Example> {
        self.conversations.iter().flatten()
    }
}

/// Measures, fits, and writes the weights where asked.
pub async fn measure(args: &FitArgs, model: &ModelDirectory) -> Result<Report, BoxError> {
    let shipped = Weights::shipped();
    let signals: Vec<Signal> = shipped.signals.keys().copied().collect();
    let start: Vec<f32> = signals.iter().map(|&signal| shipped.of(signal)).collect();
    let mut files = Vec::with_capacity(args.files.len());
    for path in &args.files {
        let name = path.display().to_string();
        let conversations = breakdowns(model, &Dataset::load(path)?, &signals, &start).await?;
        files.push(File {
            name,
            conversations,
        });
    }
    let (trials, fitted) =
        tokio::task::spawn_blocking(move || Trial::of_all(&files, &start)).await?;
    if let Some(path) = &args.weights {
        let signals = signals.iter().copied().zip(fitted.iter().copied());
        let weights = Weights {
            signals: signals.collect(),
            ..shipped
        };
        std::fs::write(path, toml::to_string(&weights)?)?;
    }
    Ok(Report::new(trials, &signals, &fitted))
}

/// The score breakdowns of a file's questions, each conversation in its own space.
async fn breakdowns(
    model: &ModelDirectory,
    dataset: &Dataset,
    signals: &[Signal],
    weights: &[f32],
) -> Result<Vec<Vec<Example>>, BoxError> {
    let bench = Bench::start(model).await?;
    let gateway = &bench.node.gateway;
    let progress = progress("asking", dataset.conversations.len());
    let mut conversations = Vec::with_capacity(dataset.conversations.len());
    for (number, conversation) in dataset.conversations.iter().enumerate() {
        let one = std::slice::from_ref(conversation);
        let corpus = Corpus::remember(gateway, &format!("space-{number}"), one).await?;
        let mut examples = Vec::with_capacity(corpus.questions.len());
        for question in &corpus.questions {
            examples.push(example(gateway, &corpus, question, signals, weights).await?);
        }
        conversations.push(examples);
        progress.inc(1);
    }
    bench.stop().await;
    Ok(conversations)
}

async fn example(
    gateway: &Gateway,
    corpus: &Corpus,
    question: &Question,
    signals: &[Signal],
    weights: &[f32],
) -> Result<Example, BoxError> {
    let query = Query {
        explain: true,
        ..query(corpus, question, DEPTH)
    };
    let request = RecallRequest {
        query,
        wait_for: Vec::new(),
    };
    let found = gateway.recall(&call(), request).await?;
    let is_evidence = |id: &TurnId| {
        let place = corpus.places.get(id);
        place.is_some_and(|place| question.evidence.contains(place))
    };
    let places = found.hits.iter().enumerate();
    let evidence = places
        .filter(|(_, hit)| is_evidence(&hit.turn.accepted.id))
        .map(|(place, _)| place)
        .collect();
    let rows: Vec<Vec<f32>> = found
        .hits
        .iter()
        .map(|hit| row(hit, signals, weights))
        .collect();
    Ok(Example::new(&rows, evidence, question.evidence.len()))
}

/// What each signal adds at a weight of 1.
fn row(hit: &Hit, signals: &[Signal], weights: &[f32]) -> Vec<f32> {
    let value = |(signal, weight): (&Signal, &f32)| {
        let named = |score: &&memfleet_ports::retriever::SignalScore| score.signal == signal.name();
        let score = hit.signals.iter().find(named);
        score.map_or(0.0, |score| score.contribution / weight)
    };
    signals.iter().zip(weights).map(value).collect()
}

/// Weights for the files, without one conversation or one file where asked.
fn fit(files: &[File], start: &[f32], without: Without) -> Vec<f32> {
    let mut sets: Vec<Vec<&Example>> = Vec::with_capacity(files.len());
    for (at, file) in files.iter().enumerate() {
        let kept = |number: usize| match without {
            Without::Nothing => true,
            Without::Conversation(file, conversation) => (file, conversation) != (at, number),
            Without::File(file) => file != at,
        };
        let conversations = file.conversations.iter().enumerate();
        sets.push(
            conversations
                .filter(|&(number, _)| kept(number))
                .flat_map(|(_, examples)| examples)
                .collect(),
        );
    }
    sets.retain(|set| !set.is_empty());
    ascend(&sets, start)
}

/// What a fit does not see.
#[derive(Clone, Copy)]
enum Without {
    Nothing,
    /// File and conversation.
    Conversation(usize, usize),
    File(usize),
}
