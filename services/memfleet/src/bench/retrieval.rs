//! `memfleet bench retrieval`: recall, coverage and coverage inside a token budget, by category, with latencies.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use futures::future::try_join_all;
use indicatif::{ProgressBar, ProgressStyle};
use memfleet_evaluation::{Conversation, Dataset, Question};
use memfleet_gateway::Gateway;
use memfleet_models::ModelDirectory;
use memfleet_ports::assembly::{AssembleRequest, Assembly};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::{Memory, RecallRequest};
use memfleet_ports::retriever::Query;
use memfleet_runtime::BoxError;

use super::Bench;
use super::arms::arms;
use super::latency::Latency;
use super::once::once;
use super::report::{CategoryFigures, Figures, FileReport, Measures, Report, Sums};
use crate::corpus::{Corpus, call};

/// Budgets of the block, in tokens of `TOKENIZER`.
const BUDGETS: [u32; 5] = [300, 500, 1000, 2000, 4000];
const TOKENIZER: &str = "o200k_base";
/// Depth of a ranking.
const DEPTH: u32 = 100;
/// Candidates of a block: more turns than the largest budget holds.
const BLOCK_CANDIDATES: u32 = 250;

/// Arguments.
#[derive(Debug, Args)]
pub struct RetrievalArgs {
    /// Data sets with annotated evidence; the format is detected
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Also all conversations of a file in one space
    #[arg(long)]
    pooled: bool,
    /// Also BM25, dense and reciprocal rank fusion of both on the same turns
    #[arg(long)]
    arms: bool,
    /// Write the report as JSON to this file
    #[arg(id = "json", long = "json", value_name = "OUT")]
    pub out: Option<PathBuf>,
}

/// Measures every file.
pub async fn measure_files(
    args: &RetrievalArgs,
    model: &ModelDirectory,
) -> Result<Report, BoxError> {
    let mut files = Vec::with_capacity(args.files.len());
    for path in &args.files {
        let dataset = Dataset::load(path)?;
        let singly = dataset
            .conversations
            .iter()
            .map(std::slice::from_ref)
            .collect::<Vec<_>>();
        let figures = measure(model, &singly, args.arms).await?;
        let pooled = match args.pooled {
            true => Some(measure(model, &[&dataset.conversations], args.arms).await?),
            false => None,
        };
        files.push(FileReport {
            file: path.display().to_string(),
            conversations: dataset.conversations.len(),
            turns: dataset.turns(),
            figures,
            pooled,
        });
    }
    Ok(Report { files })
}

/// Everything about one way to lay conversations out in spaces.
async fn measure(
    model: &ModelDirectory,
    layout: &[&[Conversation]],
    with_arms: bool,
) -> Result<Figures, BoxError> {
    let bench = Bench::start(model).await?;
    let mut corpora = Vec::with_capacity(layout.len());
    let progress = progress("remembering", layout.len());
    for (number, conversations) in layout.iter().enumerate() {
        corpora.push(
            Corpus::remember(
                &bench.node.gateway,
                &format!("space-{number}"),
                conversations,
            )
            .await?,
        );
        progress.inc(1);
    }
    let ours = Method::run("memfleet", &bench.node.gateway, &corpora).await?;
    let mut others = BTreeMap::new();
    if with_arms {
        for (name, gateway) in arms(&bench.node) {
            others.insert(
                name,
                Method::run(name, &gateway, &corpora).await?.measures(),
            );
        }
    }
    bench.stop().await;
    Ok(ours.figures(others))
}

/// One method over all questions.
#[derive(Default)]
struct Method {
    by_category: BTreeMap<String, Sums>,
    all: Sums,
    durations: Vec<Duration>,
}

impl Method {
    async fn run(name: &str, gateway: &Gateway, corpora: &[Corpus]) -> Result<Self, BoxError> {
        let mut method = Self::default();
        let gateway = &once(gateway);
        let progress = progress(
            name,
            corpora.iter().map(|corpus| corpus.questions.len()).sum(),
        );
        for corpus in corpora {
            for question in &corpus.questions {
                method.ask(gateway, corpus, question).await?;
                progress.inc(1);
            }
        }
        Ok(method)
    }

    async fn ask(
        &mut self,
        gateway: &Gateway,
        corpus: &Corpus,
        question: &Question,
    ) -> Result<(), BoxError> {
        let request = RecallRequest {
            query: query(corpus, question, DEPTH),
            wait_for: Vec::new(),
        };
        let begun = Instant::now();
        let found = gateway.recall(&call(), request).await?;
        self.durations.push(begun.elapsed());
        let ids = found.hits.iter().map(|hit| &hit.turn.accepted.id);
        let ranked = ids
            .filter_map(|id| corpus.places.get(id).copied())
            .collect::<Vec<_>>();
        let (whole, excerpts) = tokio::try_join!(
            shares(gateway, corpus, question, false),
            shares(gateway, corpus, question, true)
        )?;
        let category = self.by_category.entry(question.category.clone());
        for sums in [&mut self.all, category.or_default()] {
            sums.ranked.add(question, &ranked);
            sums.whole.add(whole);
            sums.excerpts.add(excerpts);
        }
        Ok(())
    }

    fn measures(&self) -> Measures {
        self.all.measures()
    }

    fn figures(self, arms: BTreeMap<&'static str, Measures>) -> Figures {
        let category = |sums: &Sums| CategoryFigures {
            questions: sums.whole.questions(),
            measures: sums.measures(),
        };
        Figures {
            questions: self.all.whole.questions(),
            all: self.measures(),
            by_category: self
                .by_category
                .iter()
                .map(|(name, sums)| (name.clone(), category(sums)))
                .collect(),
            latency_ms: Latency::of(self.durations),
            arms,
        }
    }
}

/// For each budget, whether the block holds all evidence: 1 or 0. Blocks are put together on all cores.
async fn shares(
    gateway: &Gateway,
    corpus: &Corpus,
    question: &Question,
    excerpts: bool,
) -> Result<[(usize, f64); BUDGETS.len()], BoxError> {
    let mut shares = BUDGETS.map(|budget| (budget as usize, 0.0));
    let requests = BUDGETS.map(|budget| request(corpus, question, budget, excerpts));
    let blocks = requests.map(|request| async { gateway.assemble(&call(), request).await });
    for (share, block) in shares.iter_mut().zip(try_join_all(blocks).await?) {
        let shown = block
            .items
            .iter()
            .filter_map(|item| corpus.places.get(&item.turn))
            .collect::<HashSet<_>>();
        let whole = question.evidence.iter().all(|place| shown.contains(place));
        share.1 = f64::from(u8::from(whole));
    }
    Ok(shares)
}

/// A question as a user asks it.
pub fn query(corpus: &Corpus, question: &Question, k: u32) -> Query {
    Query {
        text: question.text.clone(),
        spaces: vec![corpus.space.clone()],
        filter: TurnFilter::default(),
        k,
        neighbours: 0,
        now: None,
        explain: false,
    }
}

fn request(
    corpus: &Corpus,
    question: &Question,
    budget_tokens: u32,
    excerpts: bool,
) -> AssembleRequest {
    AssembleRequest {
        query: query(corpus, question, BLOCK_CANDIDATES),
        budget_tokens,
        tokenizer: TOKENIZER.to_owned(),
        max_items: None,
        max_item_tokens: None,
        excerpts,
        wait_for: Vec::new(),
    }
}

/// A bar on the terminal; silent elsewhere.
pub fn progress(name: &str, length: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:12} {bar:40} {pos}/{len} {per_sec} {eta}");
    ProgressBar::new(length as u64)
        .with_message(name.to_owned())
        .with_style(style.expect("the template is well formed"))
}
