//! `memfleet rebuild`: derives a space's facts once more.

use std::time::Duration;

use clap::Args;
use memfleet_domain::ids::SpaceId;
use memfleet_ports::knowledge::Rebuilding;
use serde_json::json;

use super::exit::{Error, Exit};
use super::{Handle, values};
use crate::output::{Output, Progress};

/// Pause between two looks at how far it is.
const LOOK: Duration = Duration::from_millis(500);

/// Derive the facts of a space once more; those in use stay until all of the new ones are ready
#[derive(Debug, Args)]
pub struct RebuildArgs {
    /// The space
    #[arg(value_parser = values::space)]
    space: SpaceId,
    /// Do not wait until it is done
    #[arg(long)]
    no_wait: bool,
}

/// Runs the command.
pub async fn run(args: RebuildArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let begun = handle
        .maintenance
        .rebuild(&handle.call(), &args.space)
        .await?;
    if !args.no_wait {
        let finished = finished(&args.space, begun, handle);
        handle.long_call().within("the rebuild", finished).await?;
    }
    output.answer(
        || json!({ "done": !args.no_wait, "goal": begun.goal }),
        |_| if args.no_wait { "begun" } else { "done" }.to_owned(),
    )?;
    Ok(Exit::Done)
}

async fn finished(
    space: &SpaceId,
    begun: Rebuilding,
    handle: &Handle,
) -> Result<(), memfleet_domain::Fault> {
    let progress = Progress::changes(begun.goal, "rebuilding");
    let mut rebuilding = Some(begun);
    while let Some(Rebuilding { reached, .. }) = rebuilding {
        progress.reached(reached);
        tokio::time::sleep(LOOK).await;
        rebuilding = handle.maintenance.rebuilding(&handle.call(), space).await?;
    }
    Ok(())
}
