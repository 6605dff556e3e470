//! `memfleet rebuild`: derives a space's facts once more, or makes its graph as its facts are.

use std::time::Duration;

use clap::Args;
use memfleet_domain::ids::SpaceId;
use memfleet_ports::knowledge::Rebuilding;
use memfleet_ports::maintenance::GraphCheck;
use serde_json::json;

use super::Handle;
use super::exit::{Error, Exit};
use super::place::InSpace;
use crate::output::{Output, Progress};

/// Pause between two looks at how far it is.
const LOOK: Duration = Duration::from_millis(500);

/// Derive the facts of a space once more; those in use stay until all of the new ones are ready
#[derive(Debug, Args)]
pub struct RebuildArgs {
    #[command(flatten)]
    space: InSpace,
    /// Do not wait until it is done
    #[arg(long)]
    no_wait: bool,
    /// Leave the facts, and make the semantic graph as they are
    #[arg(long, conflicts_with = "no_wait")]
    graph: bool,
    /// Only say where the graph differs from the facts
    #[arg(long, requires = "graph")]
    dry_run: bool,
}

/// Runs the command.
pub async fn run(args: RebuildArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    if args.graph {
        return graph(&args, handle, output).await;
    }
    let begun = handle
        .maintenance
        .rebuild(&handle.call(), args.space.name())
        .await?;
    if !args.no_wait {
        let finished = finished(args.space.name(), begun, handle);
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

/// Page by page.
async fn graph(args: &RebuildArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let progress = Progress::triplets("comparing");
    let (mut all, mut after) = (GraphCheck::default(), None);
    loop {
        let (call, space) = (handle.call(), args.space.name());
        let page = if args.dry_run {
            handle
                .maintenance
                .verify_graph(&call, space, after.as_ref())
        } else {
            handle
                .maintenance
                .rebuild_graph(&call, space, after.as_ref())
        };
        let page = page.await?;
        all = GraphCheck {
            compared: all.compared + page.compared,
            missing: all.missing + page.missing,
            different: all.different + page.different,
            surplus: all.surplus + page.surplus,
            behind: page.behind,
            next: None,
        };
        progress.reached(all.compared);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    drop(progress);
    output.answer(
        || {
            json!({
                "repaired": !args.dry_run,
                "compared": all.compared,
                "missing": all.missing,
                "different": all.different,
                "surplus": all.surplus,
                "behind": all.behind,
            })
        },
        |_| told(&all, args.dry_run),
    )?;
    Ok(Exit::Done)
}

fn told(check: &GraphCheck, dry_run: bool) -> String {
    let GraphCheck {
        compared,
        missing,
        different,
        surplus,
        behind,
        ..
    } = check;
    let wrong = missing + different + surplus > 0;
    let repaired = if wrong && !dry_run { "; repaired" } else { "" };
    let behind = match behind {
        0 => String::new(),
        _ => format!("; {behind} changes are yet to follow"),
    };
    format!(
        "{compared} triplets of facts compared: {missing} missing, {different} different, {surplus} of no fact{repaired}{behind}"
    )
}
