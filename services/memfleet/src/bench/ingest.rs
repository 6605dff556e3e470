//! `memfleet bench ingest`: how fast turns go in, how soon one is found, what it takes on disk and in memory.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use memfleet_consolidator::Mode;
use memfleet_domain::ids::SpaceId;
use memfleet_gateway::Gateway;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge::Stage;
use memfleet_ports::memory::{Memory, RecallRequest, RememberRequest};
use memfleet_ports::retriever::Query;
use memfleet_runtime::BoxError;
use serde::Serialize;

use super::latency::Latency;
use super::process::{bytes_of_files, resident_memory};
use super::synthetic::Conversation;
use super::{Bench, query};
use crate::corpus::{accept, call};
use crate::models::ConfiguredModels;

/// Arguments.
#[derive(Debug, Args)]
pub struct IngestArgs {
    /// Turns of the bulk import
    #[arg(long, default_value_t = 10_000)]
    turns: usize,
    /// Single turns whose way to the first search is timed
    #[arg(long, default_value_t = 200)]
    singles: usize,
    /// Derive nothing meanwhile: the agents take their share of the processors and of the model
    #[arg(long)]
    turns_alone: bool,
    /// Write the report as JSON to this file
    #[arg(id = "json", long = "json", value_name = "OUT")]
    pub out: Option<PathBuf>,
}

/// What was measured.
#[derive(Debug, Serialize)]
pub struct Report {
    turns: usize,
    seconds: f64,
    turns_per_second: f64,
    word_pieces_per_second: f64,
    searchable_ms: Latency,
    bytes_on_disk_per_turn: f64,
    resident_memory_mib: f64,
}

/// Measures it.
pub async fn measure(args: &IngestArgs, models: &ConfiguredModels) -> Result<Report, BoxError> {
    let agents = if args.turns_alone {
        &[]
    } else {
        &Stage::ALL[..]
    };
    let bench = Bench::start_with(models, agents, Mode::default()).await?;
    let gateway = bench.node.gateway.clone();
    let space = SpaceId::new("ingest")?;
    let mut conversation = Conversation::new(1);
    let turns = conversation.turns(args.turns);
    let pieces = word_pieces(models, turns.iter().map(|turn| turn.content.text.as_str()))?;
    let begun = Instant::now();
    accept(&*gateway, &space, turns).await?;
    let seconds = begun.elapsed().as_secs_f64();
    let searchable = singles(&gateway, &space, &mut conversation, args.singles).await?;
    let resident = resident_memory();
    bench.workers.stop().await;
    let bytes = bytes_of_files(bench.directory.path())?;
    Ok(Report {
        turns: args.turns,
        seconds,
        turns_per_second: args.turns as f64 / seconds,
        word_pieces_per_second: pieces as f64 / seconds,
        searchable_ms: Latency::of(searchable),
        bytes_on_disk_per_turn: bytes as f64 / (args.turns + args.singles) as f64,
        resident_memory_mib: resident as f64 / f64::from(1 << 20),
    })
}

fn word_pieces<'a>(
    models: &ConfiguredModels,
    texts: impl Iterator<Item = &'a str>,
) -> Result<usize, BoxError> {
    let encoder = models.main.load(std::num::NonZeroUsize::MIN)?;
    let texts = texts.collect::<Vec<_>>();
    let tokens = encoder.tokenize(&texts)?;
    Ok(tokens.iter().map(|tokens| tokens.pieces().len()).sum())
}

/// From the call of `Remember` to the end of a search that found the turn.
async fn singles(
    gateway: &Gateway,
    space: &SpaceId,
    conversation: &mut Conversation,
    count: usize,
) -> Result<Vec<Duration>, BoxError> {
    let mut durations = Vec::with_capacity(count);
    for turn in conversation.turns(count) {
        let text = turn.content.text.clone();
        let begun = Instant::now();
        let request = RememberRequest {
            space: space.clone(),
            turns: vec![turn],
            idempotency_key: None,
        };
        let receipt = gateway.remember(&call(), request).await?;
        let filter = TurnFilter {
            turns: vec![receipt.turns[0].id],
            ..TurnFilter::default()
        };
        let query = Query {
            filter,
            ..query(space, text, 1)
        };
        let found = gateway
            .recall(
                &call(),
                RecallRequest {
                    wait_for: vec![receipt.batch],
                    ..RecallRequest::from(query)
                },
            )
            .await?;
        durations.push(begun.elapsed());
        if found.hits.len() != 1 {
            return Err("a turn that was remembered was not found".into());
        }
    }
    Ok(durations)
}

impl Report {
    /// The figures for people.
    pub fn table(&self) -> String {
        [
            format!(
                "bulk import           {:>10.0} turns/s ({} turns, {:.0} word pieces/s)",
                self.turns_per_second, self.turns, self.word_pieces_per_second
            ),
            format!(
                "remember → searchable {:>10.1} ms p50, {:.1} ms p95",
                self.searchable_ms.p50, self.searchable_ms.p95
            ),
            format!(
                "on disk               {:>10.0} bytes a turn",
                self.bytes_on_disk_per_turn
            ),
            format!(
                "resident memory       {:>10.0} MiB",
                self.resident_memory_mib
            ),
        ]
        .join("\n")
    }
}
