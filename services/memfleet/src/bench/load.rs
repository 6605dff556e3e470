//! `memfleet bench load`: a running node or fleet under concurrent callers; what each kind of call takes, and how that compares
//! with a second system that is measured in turns with it.

mod mix;
mod report;
mod system;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use memfleet_domain::time::{Clock, SystemClock};
use memfleet_runtime::BoxError;
use memfleet_runtime::config::HumanDuration;

use crate::cli::{Global, Handle};
use mix::Mix;
use report::Report;
use system::{Plan, System};

/// Arguments.
#[derive(Debug, Args)]
pub struct LoadArgs {
    /// Callers at once, each with a connection of its own and one call at a time
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    clients: u16,
    /// How long each system is under load, all rounds together
    #[arg(long, default_value = "30s", value_name = "DURATION")]
    length: HumanDuration,
    /// Rounds: with a second system, each is measured once a round
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Kinds of calls and their shares: remember, searchable (a `Remember` and the `Recall` that waits for it), recall, assemble
    #[arg(long, default_value = "remember=1,recall=4,assemble=1")]
    mix: Mix,
    /// Spaces that the calls spread over
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    spaces: u16,
    /// Turns in each space before the load begins
    #[arg(long, default_value_t = 10_000)]
    turns: usize,
    /// A second system, for ratios of the first one to it
    #[arg(long, value_name = "URL")]
    baseline: Option<String>,
    /// API key of the second system; by default the same
    #[arg(long, value_name = "KEY", requires = "baseline")]
    baseline_api_key: Option<memfleet_runtime::config::Secret>,
    /// Write the report as JSON to this file
    #[arg(id = "json", long = "json", value_name = "OUT")]
    pub out: Option<PathBuf>,
}

/// Fills the systems, puts them under load in turns, and removes what it wrote.
pub async fn measure(args: &LoadArgs, global: &Global) -> Result<Report, BoxError> {
    let plan = Plan {
        // A run that was cut off leaves spaces behind: the next must not find them.
        run: SystemClock.now().timestamp(),
        spaces: args.spaces,
        turns: args.turns,
        mix: args.mix.clone(),
    };
    let mut systems = Vec::new();
    for global in [Some(global.clone()), args.baseline_of(global)]
        .into_iter()
        .flatten()
    {
        let mut callers = Vec::new();
        for _ in 0..args.clients {
            callers.push(Handle::connect(&global).await?);
        }
        systems.push(System::new(global.server, callers));
    }
    let measured = rounds(args, &plan, &mut systems).await;
    for system in &systems {
        system.clear(&plan).await?;
    }
    measured?;
    Ok(Report::of(&systems))
}

async fn rounds(args: &LoadArgs, plan: &Plan, systems: &mut [System]) -> Result<(), BoxError> {
    for system in &mut *systems {
        eprintln!("{}: {} turns a space", system.name, plan.turns);
        system.fill(plan).await?;
    }
    let length: Duration = args.length.get() / u32::from(args.rounds);
    for round in 1..=args.rounds {
        for system in &mut *systems {
            eprintln!("{}: round {round} of {}", system.name, args.rounds);
            system.load(plan, u64::from(round), length).await?;
        }
    }
    Ok(())
}

impl LoadArgs {
    /// The options that lead to the second system.
    fn baseline_of(&self, global: &Global) -> Option<Global> {
        let server = self.baseline.clone()?;
        Some(global.elsewhere(server, self.baseline_api_key.clone()))
    }
}
