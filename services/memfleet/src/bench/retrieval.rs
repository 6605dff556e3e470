//! `memfleet bench retrieval`: recall, coverage and coverage inside a token budget, by category, with latencies.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use futures::future::try_join_all;
use indicatif::{ProgressBar, ProgressStyle};
use memfleet_domain::FaultKind;
use memfleet_domain::ids::SpaceId;
use memfleet_domain::quality::SearchQuality;
use memfleet_domain::time::{Clock, SystemClock};
use memfleet_evaluation::{Conversation, Dataset, Question, Tally};
use memfleet_gateway::Gateway;
use memfleet_ports::assembly::AssembleRequest;
use memfleet_ports::knowledge::Stage;
use memfleet_ports::memory::{Memory, RecallRequest};
use memfleet_ports::retriever::Query;
use memfleet_runtime::BoxError;

use super::arms::arms;
use super::latency::Latency;
use super::once::once;
use super::report::{CategoryFigures, Figures, FileReport, Measures, Report, Sums};
use super::stopping::StopRequest;
use super::{Bench, forget, query};
use crate::cli::{Global, Handle, QualityFlag};
use crate::corpus::{Corpus, call, length};
use crate::models::ConfiguredModels;
use crate::output::Progress;

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
    /// Cost that searches may have: the node in this process gets the vectors for it; another one
    /// has to have them
    #[arg(long, value_name = "QUALITY", value_enum)]
    quality: Option<QualityFlag>,
    /// Write the report as JSON to this file
    #[arg(id = "json", long = "json", value_name = "OUT")]
    pub out: Option<PathBuf>,
}

/// Measures every file on nodes of its own.
pub async fn measure_files(
    args: &RetrievalArgs,
    models: &ConfiguredModels,
    stop: &StopRequest,
) -> Result<Report, BoxError> {
    each_file(args, stop, async |job| local(models, job, args.arms).await).await
}

/// Measures every file on the system that the global options name.
pub async fn measure_remote(
    args: &RetrievalArgs,
    global: &Global,
    stop: &StopRequest,
) -> Result<Report, BoxError> {
    let handle = Handle::connect(global).await?;
    each_file(args, stop, async |job| remote(&handle, job).await).await
}

/// Conversations that share a space, for each space.
type Layout<'a> = [&'a [Conversation]];

/// One measurement of a file.
struct Job<'a> {
    /// The file.
    name: &'a str,
    layout: &'a Layout<'a>,
    quality: Option<SearchQuality>,
    stop: &'a StopRequest,
}

/// Figures of the first spaces of a layout.
struct Measured {
    figures: Figures,
    /// How many spaces.
    spaces: usize,
}

/// Measures the files in order. Where it is asked to stop, the last file has the figures of the
/// conversations that were finished.
async fn each_file(
    args: &RetrievalArgs,
    stop: &StopRequest,
    measure: impl AsyncFn(&Job<'_>) -> Result<Option<Measured>, BoxError>,
) -> Result<Report, BoxError> {
    let mut files = Vec::with_capacity(args.files.len());
    for path in &args.files {
        let dataset = Dataset::load(path)?;
        let file = path.display().to_string();
        let singly = dataset.conversations.iter().map(std::slice::from_ref);
        let singly: Vec<&[Conversation]> = singly.collect();
        let name = path.file_name().and_then(|it| it.to_str()).unwrap_or(&file);
        let quality = args.quality.map(Into::into);
        let job = |name, layout| Job {
            name,
            layout,
            quality,
            stop,
        };
        let Some(measured) = measure(&job(name, &singly)).await? else {
            break;
        };
        let pooled = match args.pooled && stop.exit().is_none() {
            true => {
                let name = format!("{name} (pooled)");
                measure(&job(&name, &[&dataset.conversations])).await?
            }
            false => None,
        };
        files.push(FileReport {
            conversations: dataset.conversations.len(),
            conversations_measured: measured.spaces,
            turns: dataset.turns(),
            figures: measured.figures,
            pooled: pooled.map(|it| it.figures),
            file,
        });
        if stop.exit().is_some() {
            break;
        }
    }
    let partial = stop.exit().is_some();
    Ok(Report { partial, files })
}

/// A node in this process.
async fn local(
    models: &ConfiguredModels,
    job: &Job<'_>,
    with_arms: bool,
) -> Result<Option<Measured>, BoxError> {
    let quality = job.quality.unwrap_or_default();
    let bench = Bench::start_searching(models, quality).await?;
    let measured = on_node(&bench, job, with_arms).await;
    bench.stop().await;
    measured
}

async fn on_node(
    bench: &Bench,
    job: &Job<'_>,
    with_arms: bool,
) -> Result<Option<Measured>, BoxError> {
    let of = |gateway: &Gateway| {
        let timeout = Some(Duration::from_hours(1));
        Handle::new(Arc::new(once(gateway)), call().tenant, timeout)
    };
    let begun = Instant::now();
    let progress = job.remembering();
    let corpora = async {
        let corpora = remember(&*bench.node.gateway, "space", job, &progress).await?;
        progress.turn_to(&format!("{}: deriving", job.name));
        bench.derived(&Stage::ALL).await?;
        bench.embedded_twice().await?;
        Ok::<_, BoxError>(corpora)
    };
    let corpora = job.stop.or_done(progress.while_waiting(corpora)).await;
    drop(progress);
    let Some(corpora) = corpora.transpose()? else {
        return Ok(None);
    };
    let seconds = begun.elapsed().as_secs_f64();
    let gateway = &bench.node.gateway;
    let ours = Method::run("memfleet", &of(gateway), &corpora, job).await?;
    let mut others = BTreeMap::new();
    if with_arms {
        for (name, gateway) in arms(&bench.node) {
            let arm = Method::run(name, &of(&gateway), &corpora, job).await?;
            if arm.spaces == corpora.len() {
                others.insert(name, arm.measures());
            }
        }
    }
    let turns: usize = corpora.iter().map(|corpus| corpus.places.len()).sum();
    Ok(ours.measured(others, Some(turns as f64 / seconds)))
}

/// A system elsewhere, which is left as it was.
async fn remote(handle: &Handle, job: &Job<'_>) -> Result<Option<Measured>, BoxError> {
    let now = SystemClock.now().timestamp_millis();
    let name = format!("bench-retrieval-{now}");
    let measured = on_system(handle, &name, job).await;
    for number in 0..job.layout.len() {
        match forget(handle, SpaceId::new(space_name(&name, number))?).await {
            // It was stopped before this one came to be.
            Err(fault) if fault.kind == FaultKind::NotFound => {}
            forgotten => forgotten?,
        }
    }
    measured
}

async fn on_system(
    handle: &Handle,
    name: &str,
    job: &Job<'_>,
) -> Result<Option<Measured>, BoxError> {
    let progress = job.remembering();
    let corpora = remember(&*handle.memory, name, job, &progress);
    let corpora = job.stop.or_done(progress.while_waiting(corpora)).await;
    drop(progress);
    let Some(corpora) = corpora.transpose()? else {
        return Ok(None);
    };
    let method = Method::run("remote", handle, &corpora, job).await?;
    Ok(method.measured(BTreeMap::new(), None))
}

impl Job<'_> {
    fn remembering(&self) -> Progress {
        let what = format!("{}: remembering", self.name);
        Progress::conversations(self.layout.len() as u64, &what)
    }
}

fn space_name(name: &str, number: usize) -> String {
    format!("{name}-{number}")
}

async fn remember(
    memory: &dyn Memory,
    name: &str,
    job: &Job<'_>,
    progress: &Progress,
) -> Result<Vec<Corpus>, BoxError> {
    let mut corpora = Vec::with_capacity(job.layout.len());
    for (number, conversations) in job.layout.iter().enumerate() {
        let name = space_name(name, number);
        corpora.push(Corpus::remember(memory, &name, conversations).await?);
        progress.advance(1);
    }
    Ok(corpora)
}

/// One method over the questions of the first spaces.
#[derive(Default, Clone)]
struct Method {
    by_category: BTreeMap<String, Sums>,
    all: Sums,
    durations: Vec<Duration>,
    /// Spaces whose questions were all asked.
    spaces: usize,
}

impl Method {
    /// Asks all questions, or those of the spaces that are finished when it is asked to stop.
    async fn run(
        name: &str,
        handle: &Handle,
        corpora: &[Corpus],
        job: &Job<'_>,
    ) -> Result<Self, BoxError> {
        let (mut method, mut finished) = (Self::default(), Self::default());
        let questions: usize = corpora.iter().map(|corpus| corpus.questions.len()).sum();
        let progress = Progress::questions(questions as u64, name);
        for (corpus, number) in corpora.iter().zip(1..) {
            let (file, all) = (job.name, corpora.len());
            progress.turn_to(&format!("{file}, {name}: conversation {number} of {all}"));
            for question in &corpus.questions {
                let asked = method.ask(handle, corpus, question, job.quality);
                match job.stop.or_done(asked).await {
                    Some(asked) => asked?,
                    None => return Ok(finished),
                }
                progress.advance(1);
            }
            method.spaces = number;
            finished.clone_from(&method);
        }
        Ok(finished)
    }

    async fn ask(
        &mut self,
        handle: &Handle,
        corpus: &Corpus,
        question: &Question,
        quality: Option<SearchQuality>,
    ) -> Result<(), BoxError> {
        let query = Query {
            quality,
            ..asked(corpus, question, DEPTH)
        };
        let request = RecallRequest::from(query);
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
            shares(handle, corpus, question, quality, false),
            shares(handle, corpus, question, quality, true)
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

    /// The figures; none where no space is finished.
    fn measured(
        self,
        arms: BTreeMap<&'static str, Measures>,
        derived_turns_per_second: Option<f64>,
    ) -> Option<Measured> {
        let category = |sums: &Sums| CategoryFigures {
            questions: sums.whole.questions(),
            measures: sums.measures(),
        };
        let by_category = self.by_category.iter();
        let by_category = by_category.map(|(name, sums)| (name.clone(), category(sums)));
        let figures = Figures {
            questions: self.all.whole.questions(),
            all: self.measures(),
            by_category: by_category.collect(),
            latency_ms: Latency::of(self.durations),
            derived_turns_per_second,
            arms,
        };
        (self.spaces > 0).then_some(Measured {
            figures,
            spaces: self.spaces,
        })
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
    quality: Option<SearchQuality>,
    excerpts: bool,
) -> Result<[(usize, f64); BUDGETS.len()], BoxError> {
    let mut shares = BUDGETS.map(|budget| (budget as usize, 0.0));
    let requests = BUDGETS.map(|budget| {
        let mut request = request(corpus, question, budget, excerpts);
        request.query.quality = quality;
        request
    });
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
