//! `memfleet bench assemble`: how long an assembly takes, stage by stage, as a space grows; and what gates and budgets, as they are shipped,
//! cost of the evidence that all memory that fits would have.

mod quality;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use memfleet_domain::ids::{SessionId, SpaceId};
use memfleet_domain::turn::Role;
use memfleet_gateway::Gateway;
use memfleet_ports::assembly::{AssembleRequest, Assembly, Content, Message, Prompt};
use memfleet_ports::knowledge::Stage;
use memfleet_runtime::BoxError;
use serde::Serialize;
use uuid::Uuid;

use self::quality::Named;
use super::latency::Latency;
use super::synthetic::Conversation;
use super::{Bench, query};
use crate::corpus::{accept, call};
use crate::models::ConfiguredModels;

/// Candidates, as an `Assemble` has that does not say.
const CANDIDATES: u32 = 100;

/// Arguments.
#[derive(Debug, Args)]
pub struct AssembleArgs {
    /// Data sets with annotated evidence: what the shipped policy injects of it, beside all that fits
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Another policy to measure, as `memfleet policy set` takes it; may be given several times
    #[arg(long = "policy", value_name = "POLICY")]
    policies: Vec<PathBuf>,
    /// Sizes of the space to measure latency at, ascending
    #[arg(long, value_delimiter = ',', default_value = "1000,10000,100000")]
    turns: Vec<usize>,
    /// Assemblies at each size
    #[arg(long, default_value_t = 300)]
    queries: usize,
    /// Assemblies before those that count
    #[arg(long, default_value_t = 100)]
    warm_up: usize,
    /// Write the report as JSON to this file
    #[arg(id = "json", long = "json", value_name = "OUT")]
    pub out: Option<PathBuf>,
}

/// What was measured.
#[derive(Debug, Serialize)]
pub struct Report {
    sizes: Vec<Size>,
    files: Vec<quality::File>,
}

#[derive(Debug, Serialize)]
struct Size {
    turns: usize,
    latency_ms: Latency,
    /// By stage.
    stages_ms: BTreeMap<String, Latency>,
}

/// Measures it.
pub async fn measure(args: &AssembleArgs, models: &ConfiguredModels) -> Result<Report, BoxError> {
    let policies = args.policies.iter().map(|path| Named::read(path));
    let policies = policies.collect::<Result<Vec<_>, _>>()?;
    let mut files = Vec::with_capacity(args.files.len());
    for path in &args.files {
        files.push(quality::measure(path, &policies, models).await?);
    }
    Ok(Report {
        sizes: sizes(args, models).await?,
        files,
    })
}

async fn sizes(args: &AssembleArgs, models: &ConfiguredModels) -> Result<Vec<Size>, BoxError> {
    let bench = Bench::start(models).await?;
    let gateway = bench.node.gateway.clone();
    let space = SpaceId::new("assemble")?;
    let mut conversation = Conversation::new(1);
    let (mut stored, mut sizes) = (0, Vec::new());
    for &turns in &args.turns {
        let more = conversation.turns(turns.saturating_sub(stored));
        accept(&*gateway, &space, more).await?;
        stored = stored.max(turns);
        bench.derived(&Stage::ALL).await?;
        assemble(&gateway, &space, &mut conversation, args.warm_up).await?;
        let taken = assemble(&gateway, &space, &mut conversation, args.queries).await?;
        sizes.push(taken.size(stored));
        eprintln!("{stored} turns measured");
    }
    bench.stop().await;
    Ok(sizes)
}

/// How long assemblies took.
#[derive(Default)]
struct Taken {
    whole: Vec<Duration>,
    stages: BTreeMap<String, Vec<Duration>>,
}

impl Taken {
    fn size(self, turns: usize) -> Size {
        let stages = self.stages.into_iter();
        Size {
            turns,
            latency_ms: Latency::of(self.whole),
            stages_ms: stages.map(|(name, all)| (name, Latency::of(all))).collect(),
        }
    }
}

/// Each of another session, as the prompt of a user who asks a question: nothing is given again.
async fn assemble(
    gateway: &Gateway,
    space: &SpaceId,
    conversation: &mut Conversation,
    count: usize,
) -> Result<Taken, BoxError> {
    let mut taken = Taken::default();
    for _ in 0..count {
        let mut query = query(space, String::new(), CANDIDATES);
        query.session = Some(SessionId::new(format!("asking {}", Uuid::now_v7()))?);
        let message = Message {
            role: Role::User,
            content: Content::Text(conversation.question()),
        };
        let mut request = AssembleRequest {
            prompt: Prompt::Messages(vec![message]),
            ..AssembleRequest::new(query)
        };
        request.policy.failure.deadline_ms = Some(60_000);
        let begun = Instant::now();
        let answer = gateway.assemble(&call(), request).await?;
        taken.whole.push(begun.elapsed());
        for (stage, time) in answer.timings {
            taken.stages.entry(stage).or_default().push(time);
        }
    }
    Ok(taken)
}

impl Report {
    /// The figures for people.
    pub fn table(&self) -> String {
        let mut lines = Vec::new();
        for size in &self.sizes {
            let whole = ("whole".to_owned(), size.latency_ms);
            lines.push(format!("{} turns", size.turns));
            lines.push(format!(
                "{:>12}{:>10}{:>10}{:>10}",
                "stage", "p50 ms", "p95 ms", "p99 ms"
            ));
            let stages = size.stages_ms.iter().map(|(name, it)| (name.clone(), *it));
            lines.extend(stages.chain([whole]).map(|(name, it)| {
                format!("{name:>12}{:>10.2}{:>10.2}{:>10.2}", it.p50, it.p95, it.p99)
            }));
        }
        lines.extend(self.files.iter().map(quality::File::table));
        lines.join("\n")
    }
}
