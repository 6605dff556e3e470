//! `memfleet bench retrieval`: recall, coverage and coverage inside a token budget, by category, with latencies.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use futures::future::try_join_all;
use indicatif::{ProgressBar, ProgressStyle};
use memfleet_domain::time::{Clock, SystemClock};
use memfleet_evaluation::{Conversation, Dataset, Question, Tally};
use memfleet_gateway::Gateway;
use memfleet_models::ModelDirectory;
use memfleet_ports::assembly::AssembleRequest;
use memfleet_ports::knowledge::Stage;
use memfleet_ports::memory::{Memory, RecallRequest};
use memfleet_ports::retriever::Query;
use memfleet_runtime::BoxError;

use super::arms::arms;
use super::latency::Latency;
use super::once::once;
use super::report::{CategoryFigures, Figures, FileReport, Measures, Report, Sums};
use super::{Bench, forget, query};
use crate::cli::{Global, Handle};
use crate::corpus::{Corpus, call, length};

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
    #[arg(long, conflicts_with = "remote")]
    arms: bool,
    /// Measure the node or fleet that `--server` names, in spaces that are forgotten afterwards, instead of one in this process
    #[arg(long)]
    pub remote: bool,
    /// Write the report as JSON to this file
    #[arg(id = "json", long = "json", value_name = "OUT")]
    pub out: Option<PathBuf>,
}

/// Measures every file on nodes of its own.
pub async fn measure_files(
    args: &RetrievalArgs,
    model: &ModelDirectory,
) -> Result<Report, BoxError> {
    each_file(args, async |layout| local(model, layout, args.arms).await).await
}

/// Measures every file on the system that the global options name.
pub async fn measure_remote(args: &RetrievalArgs, global: &Global) -> Result<Report, BoxError> {
    let handle = Handle::connect(global).await?;
    each_file(args, async |layout| remote(&handle, layout).await).await
}

/// Conversations that share a space, for each space.
type Layout<'a> = [&'a [Conversation]];

async fn each_file(
    args: &RetrievalArgs,
    measure: impl AsyncFn(&Layout<'_>) -> Result<Figures, BoxError>,
) -> Result<Report, BoxError> {
    let mut files = Vec::with_capacity(args.files.len());
    for path in &args.files {
        let dataset = Dataset::load(path)?;
        let singly = dataset.conversations.iter().map(std::slice::from_ref);
        let figures = measure(&singly.collect::<Vec<_>>()).await?;
        let pooled = match args.pooled {
            true => Some(measure(&[&dataset.conversations]).await?),
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

/// A node in this process.
async fn local(
    model: &ModelDirectory,
    layout: &Layout<'_>,
    with_arms: bool,
) -> Result<Figures, BoxError> {
    let bench = Bench::start(model).await?;
    let of = |gateway: &Gateway| {
        let timeout = Some(Duration::from_hours(1));
        Handle::new(Arc::new(once(gateway)), call().tenant, timeout)
    };
    let begun = Instant::now();
    let corpora = remember(&*bench.node.gateway, "space", layout).await?;
    bench.derived(&Stage::ALL).await?;
    let seconds = begun.elapsed().as_secs_f64();
    let ours = Method::run("memfleet", &of(&bench.node.gateway), &corpora).await?;
    let mut others = BTreeMap::new();
    if with_arms {
        for (name, gateway) in arms(&bench.node) {
            let arm = Method::run(name, &of(&gateway), &corpora).await?;
            others.insert(name, arm.measures());
        }
    }
    bench.stop().await;
    let turns: usize = corpora.iter().map(|corpus| corpus.places.len()).sum();
    Ok(Figures {
        derived_turns_per_second: Some(turns as f64 / seconds),
        ..ours.figures(others)
    })
}

/// A system elsewhere, which is left as it was.
async fn remote(handle: &Handle, layout: &Layout<'_>) -> Result<Figures, BoxError> {
    let now = SystemClock.now().timestamp_millis();
    let corpora = remember(&*handle.memory, &format!("bench-retrieval-{now}"), layout).await?;
    let method = Method::run("remote", handle, &corpora).await;
    for corpus in corpora {
        forget(handle, corpus.space).await?;
    }
    Ok(method?.figures(BTreeMap::new()))
}

async fn remember(
    memory: &dyn Memory,
    name: &str,
    layout: &Layout<'_>,
) -> Result<Vec<Corpus>, BoxError> {
    let mut corpora = Vec::with_capacity(layout.len());
    let progress = progress("remembering", layout.len());
    for (number, conversations) in layout.iter().enumerate() {
        let name = format!("{name}-{number}");
        corpora.push(Corpus::remember(memory, &name, conversations).await?);
        progress.inc(1);
    }
    Ok(corpora)
}

/// One method over all questions.
#[derive(Default)]
struct Method {
    by_category: BTreeMap<String, Sums>,
    all: Sums,
    durations: Vec<Duration>,
}

impl Method {
    async fn run(name: &str, handle: &Handle, corpora: &[Corpus]) -> Result<Self, BoxError> {
        let mut method = Self::default();
        let progress = progress(
            name,
            corpora.iter().map(|corpus| corpus.questions.len()).sum(),
        );
        for corpus in corpora {
            for question in &corpus.questions {
                method.ask(handle, corpus, question).await?;
                progress.inc(1);
            }
        }
        Ok(method)
    }

    async fn ask(
        &mut self,
        handle: &Handle,
        corpus: &Corpus,
        question: &Question,
    ) -> Result<(), BoxError> {
        let request = RecallRequest {
            query: asked(corpus, question, DEPTH),
            wait_for: Vec::new(),
        };
        let begun = Instant::now();
        let found = handle.memory.recall(&handle.call(), request).await?;
        self.durations.push(begun.elapsed());
        let ids = found.hits.iter().map(|hit| &hit.turn.accepted.id);
        let ranked = ids
            .filter_map(|id| corpus.places.get(id).copied())
            .collect::<Vec<_>>();
        let lengths = found
            .hits
            .iter()
            .map(|hit| length(&hit.turn.accepted.content));
        let unused = unused(&lengths.collect::<Vec<_>>(), corpus.characters);
        let (whole, excerpts) = tokio::try_join!(
            shares(handle, corpus, question, false),
            shares(handle, corpus, question, true)
        )?;
        let category = self.by_category.entry(question.category.clone());
        for sums in [&mut self.all, category.or_default()] {
            sums.ranked.add(question, &ranked);
            sums.unused.add(unused);
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
            derived_turns_per_second: None,
            arms,
        }
    }
}

/// At each depth, the share of all that was said that is not among the first turns.
fn unused(lengths: &[usize], characters: usize) -> [(usize, f64); Tally::DEPTHS.len()] {
    Tally::DEPTHS.map(|depth| {
        let used: usize = lengths.iter().take(depth).sum();
        (depth, 1.0 - used as f64 / characters.max(1) as f64)
    })
}

/// For each budget, whether the block holds all evidence: 1 or 0. Blocks are put together on all cores.
async fn shares(
    handle: &Handle,
    corpus: &Corpus,
    question: &Question,
    excerpts: bool,
) -> Result<[(usize, f64); BUDGETS.len()], BoxError> {
    let mut shares = BUDGETS.map(|budget| (budget as usize, 0.0));
    let requests = BUDGETS.map(|budget| request(corpus, question, budget, excerpts));
    let blocks = requests.map(|request| async {
        let assembly = &handle.assembly;
        assembly.assemble(&handle.call(), request).await
    });
    for (share, block) in shares.iter_mut().zip(try_join_all(blocks).await?) {
        let shown = block
            .items
            .iter()
            .filter_map(|item| corpus.places.get(&item.turn()?))
            .collect::<HashSet<_>>();
        let whole = question.evidence.iter().all(|place| shown.contains(place));
        share.1 = f64::from(u8::from(whole));
    }
    Ok(shares)
}

/// A question as a user asks it.
pub fn asked(corpus: &Corpus, question: &Question, k: u32) -> Query {
    query(&corpus.space, question.text.clone(), k)
}

fn request(
    corpus: &Corpus,
    question: &Question,
    budget_tokens: u32,
    excerpts: bool,
) -> AssembleRequest {
    let query = asked(corpus, question, BLOCK_CANDIDATES);
    let mut request = AssembleRequest::ungated(query, budget_tokens);
    request.policy.selection.excerpts = Some(excerpts);
    request.tokenizer = Some(TOKENIZER.to_owned());
    request
}

/// A bar on the terminal; silent elsewhere.
pub fn progress(name: &str, length: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:12} {bar:40} {pos}/{len} {per_sec} {eta}");
    ProgressBar::new(length as u64)
        .with_message(name.to_owned())
        .with_style(style.expect("the template is well formed"))
}
