//! `memfleet bench scale`: search latency and memory as a space grows.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use memfleet_domain::ids::SpaceId;
use memfleet_gateway::Gateway;
use memfleet_ports::knowledge::Stage;
use memfleet_ports::memory::{Memory, RecallRequest};
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
pub struct ScaleArgs {
    /// Sizes of the space to measure at, ascending
    #[arg(long, value_delimiter = ',', default_value = "1000,10000,100000")]
    turns: Vec<usize>,
    /// Searches at each size
    #[arg(long, default_value_t = 300)]
    queries: usize,
    /// Searches before those that count
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
}

#[derive(Debug, Serialize)]
struct Size {
    turns: usize,
    /// While memory is derived of the turns that came last.
    deriving_ms: Latency,
    /// Once it is derived.
    quiet_ms: Latency,
    resident_memory_mib: f64,
    bytes_on_disk_per_turn: f64,
}

/// Measures it.
pub async fn measure(args: &ScaleArgs, models: &ConfiguredModels) -> Result<Report, BoxError> {
    let bench = Bench::start(models).await?;
    let gateway = bench.node.gateway.clone();
    let space = SpaceId::new("scale")?;
    let mut conversation = Conversation::new(1);
    let (mut stored, mut sizes) = (0, Vec::new());
    for &turns in &args.turns {
        accept(
            &*gateway,
            &space,
            conversation.turns(turns.saturating_sub(stored)),
        )
        .await?;
        stored = stored.max(turns);
        search(&gateway, &space, &mut conversation, args.warm_up).await?;
        let deriving = search(&gateway, &space, &mut conversation, args.queries).await?;
        bench.derived(&Stage::ALL).await?;
        search(&gateway, &space, &mut conversation, args.warm_up).await?;
        let quiet = search(&gateway, &space, &mut conversation, args.queries).await?;
        sizes.push(Size {
            turns: stored,
            deriving_ms: Latency::of(deriving),
            quiet_ms: Latency::of(quiet),
            resident_memory_mib: resident_memory() as f64 / f64::from(1 << 20),
            bytes_on_disk_per_turn: bytes_of_files(bench.path())? as f64 / stored as f64,
        });
        eprintln!("{stored} turns measured");
    }
    bench.stop().await;
    Ok(Report { sizes })
}

async fn search(
    gateway: &Gateway,
    space: &SpaceId,
    conversation: &mut Conversation,
    count: usize,
) -> Result<Vec<Duration>, BoxError> {
    let mut durations = Vec::with_capacity(count);
    for _ in 0..count {
        let query = query(space, conversation.question(), 10);
        let begun = Instant::now();
        gateway.recall(&call(), RecallRequest::from(query)).await?;
        durations.push(begun.elapsed());
    }
    Ok(durations)
}

impl Report {
    /// The figures for people.
    pub fn table(&self) -> String {
        let mut lines = vec![format!(
            "{:>9}{:>20}{:>20}{:>12}{:>14}",
            "turns", "ms, quiet", "while it derives", "memory MiB", "disk B/turn"
        )];
        let of = |latency: Latency| format!("{:.1} / {:.1}", latency.p50, latency.p99);
        lines.extend(self.sizes.iter().map(|size| {
            format!(
                "{:>9}{:>20}{:>20}{:>12.0}{:>14.0}",
                size.turns,
                of(size.quiet_ms),
                of(size.deriving_ms),
                size.resident_memory_mib,
                size.bytes_on_disk_per_turn
            )
        }));
        lines.push("milliseconds of a search: p50 / p99".to_owned());
        lines.join("\n")
    }
}
