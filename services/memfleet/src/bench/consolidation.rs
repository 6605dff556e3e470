//! `memfleet bench consolidation`: how fast the consolidator goes through what is there, by rules: each of its stages alone, over chats that
//! a seed generates, all in one space; and how long searches take there afterwards.

mod recalling;

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use memfleet_consolidator::Mode;
use memfleet_domain::Scope;
use memfleet_domain::derivation::{Derivation, Kind};
use memfleet_evaluation::constraints::{chat, most_tasks};
use memfleet_ports::knowledge::{Question, Stage};
use memfleet_runtime::BoxError;
use serde::Serialize;

use super::Bench;
use super::constraints::consolidation;
use super::latency::Latency;
use super::process::resident_memory;
use crate::corpus::{Corpus, call};
use crate::models::ConfiguredModels;
use recalling::Recalls;

/// The stages of the consolidator, in their order.
const STAGES: [Stage; 3] = [Stage::Bind, Stage::Consolidate, Stage::Relate];

/// Arguments.
#[derive(Debug, Args)]
pub struct ConsolidationArgs {
    /// Chats about 64 tasks each
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    chats: u32,
    /// When narratives are put together: `momentum` when nobody speaks of them any more, `rapid` with each fragment, `none` never
    #[arg(long, value_name = "WHEN", value_parser = consolidation, default_value = "momentum")]
    consolidation: Mode,
    /// Write the report as JSON to this file
    #[arg(id = "json", long = "json", value_name = "OUT")]
    pub out: Option<PathBuf>,
}

/// What was measured.
#[derive(Debug, Serialize)]
pub struct Report {
    chats: u32,
    turns: usize,
    fragments: usize,
    narratives: usize,
    facts: usize,
    bind: Pace,
    consolidate: Pace,
    relate: Pace,
    /// Binding and consolidation together.
    turns_per_second: f64,
    resident_memory_before_mib: f64,
    resident_memory_after_mib: f64,
    recall_ms: Recalls,
}

/// How fast a stage is.
#[derive(Debug, Clone, Copy, Serialize)]
struct Pace {
    seconds: f64,
    turns_per_second: f64,
}

/// Measures it.
pub async fn measure(
    args: &ConsolidationArgs,
    models: &ConfiguredModels,
) -> Result<Report, BoxError> {
    let others = Stage::ALL.into_iter().filter(|it| !STAGES.contains(it));
    let others: Vec<Stage> = others.collect();
    let bench = Bench::start_with(models, &others, args.consolidation).await?;
    let chats = (1..=u64::from(args.chats)).map(|seed| chat(seed, most_tasks()).conversation);
    let chats: Vec<_> = chats.collect();
    let corpus = Corpus::remember(&*bench.node.gateway, "chats", &chats).await?;
    bench.derived(&others).await?;
    let turns = corpus.places.len();
    let before = resident_memory();
    let mut paces = Vec::with_capacity(STAGES.len());
    for stage in STAGES {
        let begun = Instant::now();
        bench.node.work_off(stage).await;
        let seconds = begun.elapsed().as_secs_f64();
        paces.push(Pace {
            seconds,
            turns_per_second: turns as f64 / seconds,
        });
    }
    let after = resident_memory();
    let scope = Scope {
        tenant: call().tenant,
        space: corpus.space.clone(),
    };
    let knowledge = &bench.node.gateway.knowledge;
    let all = async |kind| -> Result<Vec<Derivation>, BoxError> {
        let question = Question {
            kind: Some(kind),
            ..Question::default()
        };
        Ok(knowledge.all_derivations(&scope, &question).await?)
    };
    let facts = all(Kind::Fact).await?;
    let questions = chats.iter().flat_map(|chat| &chat.questions);
    let questions: Vec<&str> = questions.map(|it| it.text.as_str()).collect();
    let gateway = &bench.node.gateway;
    let recall_ms = Recalls::of(gateway, &corpus.space, &questions, &facts).await?;
    let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let report = Report {
        chats: args.chats,
        turns,
        fragments: all(Kind::Fragment).await?.len(),
        narratives: all(Kind::Narrative).await?.len(),
        facts: facts.len(),
        bind: paces[0],
        consolidate: paces[1],
        relate: paces[2],
        turns_per_second: turns as f64 / (paces[0].seconds + paces[1].seconds),
        resident_memory_before_mib: mebibytes(before),
        resident_memory_after_mib: mebibytes(after),
        recall_ms,
    };
    bench.stop().await;
    Ok(report)
}

impl Report {
    /// The figures for people.
    pub fn table(&self) -> String {
        let line = |name: &str, pace: Pace| {
            let (rate, seconds) = (pace.turns_per_second, pace.seconds);
            format!("{name:<22}{rate:>10.0} turns/s ({seconds:.1} s)")
        };
        let searches = |name: &str, latency: Latency| {
            let (p50, p99) = (latency.p50, latency.p99);
            format!("{name:<22}{p50:>10.1} ms p50, {p99:.1} ms p99")
        };
        [
            format!(
                "{} turns, {} fragments, {} narratives, {} facts",
                self.turns, self.fragments, self.narratives, self.facts
            ),
            line("bind", self.bind),
            line("consolidate", self.consolidate),
            line("relate", self.relate),
            format!(
                "bind and consolidate  {:>10.0} turns/s",
                self.turns_per_second
            ),
            format!(
                "resident memory       {:>10.0} MiB before, {:.0} MiB after",
                self.resident_memory_before_mib, self.resident_memory_after_mib
            ),
            searches("recall, plain", self.recall_ms.plain),
            searches("recall, gather", self.recall_ms.gather),
            searches("recall, connect", self.recall_ms.connect),
        ]
        .join("\n")
    }
}
