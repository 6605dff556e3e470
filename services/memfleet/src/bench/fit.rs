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
use memfleet_ports::memory::{Memory, RecallRequest};
use memfleet_ports::retriever::{Hit, Query};
use memfleet_retrieval::{Signal, Weights};
use memfleet_runtime::BoxError;

use super::Bench;
use super::retrieval::{asked, progress};
use crate::corpus::{Corpus, call};
use crate::models::ConfiguredModels;
use report::{Report, Trial};

/// Turns of a breakdown; larger spaces are fitted on their best turns.
const DEPTH: u32 = 1_000;

/// Arguments.
#[derive(Debug, Args)]
pub struct FitArgs {
    /// Data sets with annotated evidence; each counts the same, however many questions it has
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Also show what the weights are worth with all conversations of a file in one space; nothing is fitted on that
    #[arg(long)]
    pooled: bool,
    /// Write the weights fitted on all questions to this file, in the form of `weights.toml` of a
    /// model in crates/retrieval/data
    #[arg(long, value_name = "FILE")]
    weights: Option<PathBuf>,
    /// Write the report as JSON to this file
    #[arg(id = "json", long = "json", value_name = "OUT")]
    pub out: Option<PathBuf>,
}

/// A file's questions, by conversation.
pub struct File {
    name: String,
    /// Each conversation its own space.
    conversations: Vec<Vec<Example>>,
    /// All conversations in one space; absent unless asked for.
    pooled: Option<Vec<Vec<Example>>>,
}

/// Measures, fits, and writes the weights where asked.
pub async fn measure(args: &FitArgs, models: &ConfiguredModels) -> Result<Report, BoxError> {
    let shipped = (*models.calibration().weights).clone();
    let signals: Vec<Signal> = shipped.signals.keys().copied().collect();
    let start: Vec<f32> = signals.iter().map(|&signal| shipped.of(signal)).collect();
    let mut files = Vec::with_capacity(args.files.len());
    for path in &args.files {
        let name = path.display().to_string();
        let dataset = Dataset::load(path)?;
        let ask = |pooled| breakdowns(models, &dataset, &signals, &start, pooled);
        files.push(File {
            name,
            conversations: ask(false).await?,
            pooled: match args.pooled {
                true => Some(ask(true).await?),
                false => None,
            },
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

/// The score breakdowns of a file's questions by conversation, each conversation in its own space or all in one.
async fn breakdowns(
    models: &ConfiguredModels,
    dataset: &Dataset,
    signals: &[Signal],
    weights: &[f32],
    pooled: bool,
) -> Result<Vec<Vec<Example>>, BoxError> {
    let bench = Bench::start(models).await?;
    let gateway = &bench.node.gateway;
    let conversations = &dataset.conversations;
    let progress = progress("asking", conversations.len());
    let size = if pooled { conversations.len() } else { 1 };
    let mut breakdowns = Vec::with_capacity(conversations.len());
    for (number, together) in conversations.chunks(size.max(1)).enumerate() {
        let corpus = Corpus::remember(&**gateway, &format!("space-{number}"), together).await?;
        let mut questions = corpus.questions.iter();
        for conversation in together {
            let mut examples = Vec::with_capacity(conversation.questions.len());
            for question in questions.by_ref().take(conversation.questions.len()) {
                examples.push(example(gateway, &corpus, question, signals, weights).await?);
            }
            breakdowns.push(examples);
            progress.inc(1);
        }
    }
    bench.stop().await;
    Ok(breakdowns)
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
        ..asked(corpus, question, DEPTH)
    };
    let request = RecallRequest::from(query);
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
