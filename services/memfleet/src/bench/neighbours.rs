//! `memfleet bench neighbours`: what the calls of one tenant take beside another that behaves badly, in pairs of runs with and without it,
//! and whether that is within bounds.

mod report;
mod ways;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use memfleet_domain::Fault;
use memfleet_domain::ids::SpaceId;
use memfleet_domain::time::{Clock, SystemClock};
use memfleet_ports::memory::{RecallRequest, RememberRequest};
use memfleet_runtime::BoxError;
use memfleet_runtime::config::{HumanDuration, Secret};
use tokio::runtime::Runtime;

use super::query;
use super::synthetic::Conversation;
use crate::cli::{Global, Handle};
use crate::corpus::accept;
use report::Pair;
pub use report::Report;
use ways::{Neighbour, Sizes, WAYS, Way};

/// Turns of the tenant that is measured before the first run, at most.
const OWN_TURNS: usize = 500;
/// Turns that a search asks for.
const K: u32 = 10;
/// Pause between two calls of the tenant that is measured.
const PAUSE: Duration = Duration::from_millis(20);
/// How long the neighbour is at it before its effect is measured.
const BEFORE: Duration = Duration::from_millis(500);

/// Arguments.
#[derive(Debug, Args)]
pub struct NeighboursArgs {
    /// API key of the tenant that behaves badly; `--api-key` is that of the tenant that is measured
    #[arg(
        long,
        env = "MEMFLEET_NEIGHBOUR_API_KEY",
        value_name = "KEY",
        hide_env_values = true
    )]
    neighbour_api_key: Secret,
    /// How long each run takes
    #[arg(long, default_value = "20s", value_name = "DURATION")]
    length: HumanDuration,
    /// Pairs of runs for each way: one without the neighbour, one with it
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    pairs: u16,
    /// Turns of the neighbour's huge space, and of its import a run at most
    #[arg(long, default_value_t = 20_000)]
    turns: usize,
    /// Small spaces, connections and streams of the neighbour at most
    #[arg(long, default_value_t = 1_000)]
    many: usize,
    /// Ways to behave badly; by default all
    #[arg(long, value_delimiter = ',', value_name = "WAY")]
    ways: Vec<Way>,
    /// How many times as long half of the calls may take beside the neighbour
    #[arg(long, default_value_t = 1.5, value_name = "FACTOR")]
    p50: f64,
    /// The same of 99 of 100 calls, …
    #[arg(long, default_value_t = 2.0, value_name = "FACTOR")]
    p99: f64,
    /// … which may take this long in any case
    #[arg(long, default_value = "30ms", value_name = "DURATION")]
    floor: HumanDuration,
    /// Write the report as JSON to this file
    #[arg(id = "json", long = "json", value_name = "OUT")]
    pub out: Option<PathBuf>,
}

/// Bounds of what a neighbour may cost.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    p50: f64,
    p99: f64,
    floor_ms: f64,
}

/// Measures each way in pairs of runs. What both tenants write stays: the system is one that is made for it.
pub async fn measure(args: &NeighboursArgs, global: &Global) -> Result<Report, BoxError> {
    let bounds = Bounds {
        p50: args.p50,
        p99: args.p99,
        floor_ms: args.floor.get().as_secs_f64() * 1000.0,
    };
    let theirs = global.elsewhere(global.server.clone(), Some(args.neighbour_api_key.clone()));
    let run = SystemClock.now().timestamp();
    let mut tenant = Tenant::new(Handle::connect(global).await?, run)?;
    let turns = Conversation::new(1).turns(args.turns.clamp(1, OWN_TURNS));
    accept(&*tenant.handle.memory, &tenant.space, turns).await?;
    let sizes = Sizes {
        turns: args.turns,
        many: args.many,
    };
    let elsewhere = elsewhere()?;
    let key = args.neighbour_api_key.clone();
    let connecting =
        elsewhere.spawn(async move { Neighbour::connect(&theirs, key, run, sizes).await });
    let neighbour = connecting.await??;
    let ways: &[Way] = match args.ways.as_slice() {
        [] => &WAYS,
        some => some,
    };
    let length = args.length.get();
    let mut report = Report::new(bounds);
    for way in ways {
        eprintln!("{way}");
        neighbour.prepare(*way).await?;
        let mut pairs = Vec::new();
        for _ in 0..args.pairs {
            let without = tenant.call_for(length).await;
            let behaving = elsewhere.spawn(neighbour.clone().behave(*way));
            tokio::time::sleep(BEFORE).await;
            let with = tenant.call_for(length).await;
            behaving.abort();
            // What it has open goes with it.
            let _cancelled = behaving.await;
            neighbour.leave(*way).await;
            pairs.push(Pair { without, with });
        }
        report.add(*way, &pairs);
    }
    Ok(report)
}

/// Threads of the neighbour's client. They stand behind those of the calls that are measured and those of a node on this
/// machine, as if the neighbour called from a machine of its own.
fn elsewhere() -> Result<tokio::runtime::Handle, BoxError> {
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    threads.enable_all();
    threads.on_thread_start(memfleet_background::yield_to_callers);
    // They end with the command.
    let runtime: &Runtime = Box::leak(Box::new(threads.build()?));
    Ok(runtime.handle().clone())
}

/// The tenant that is measured: one caller that remembers a turn and recalls, in turns.
struct Tenant {
    handle: Handle,
    space: SpaceId,
    conversation: Conversation,
}

/// Durations of the calls of one run, and why others failed.
#[derive(Debug, Default)]
struct Run {
    remember: Vec<Duration>,
    recall: Vec<Duration>,
    errors: Vec<String>,
}

impl Tenant {
    fn new(handle: Handle, run: i64) -> Result<Self, BoxError> {
        Ok(Self {
            handle,
            space: SpaceId::new(format!("bench-neighbours-{run}"))?,
            conversation: Conversation::new(2),
        })
    }

    async fn call_for(&mut self, length: Duration) -> Run {
        let mut run = Run::default();
        let until = Instant::now() + length;
        while Instant::now() < until {
            let begun = Instant::now();
            match self.remember().await {
                Ok(()) => run.remember.push(begun.elapsed()),
                Err(fault) => run.errors.push(format!("Remember: {}", fault.reason)),
            }
            let begun = Instant::now();
            match self.recall().await {
                Ok(()) => run.recall.push(begun.elapsed()),
                Err(fault) => run.errors.push(format!("Recall: {}", fault.reason)),
            }
            tokio::time::sleep(PAUSE).await;
        }
        run
    }

    async fn remember(&mut self) -> Result<(), Fault> {
        let request = RememberRequest {
            space: self.space.clone(),
            turns: self.conversation.turns(1),
            idempotency_key: None,
        };
        let (memory, call) = (&self.handle.memory, self.handle.call());
        memory.remember(&call, request).await.map(drop)
    }

    async fn recall(&mut self) -> Result<(), Fault> {
        let request = RecallRequest::from(query(&self.space, self.conversation.question(), K));
        let (memory, call) = (&self.handle.memory, self.handle.call());
        memory.recall(&call, request).await.map(drop)
    }
}
