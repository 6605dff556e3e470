//! `memfleet turns` and `memfleet turn`: the turns of a space, and the versions of one.

use clap::Args;
use memfleet_domain::ids::{BatchId, SpaceId, TurnId};
use memfleet_domain::turn::Turn;

use super::exit::{Error, Exit};
use super::filter::{Selection, View};
use super::handle::at_most;
use super::{Handle, values};
use crate::output::{Output, Palette, printable, turn_json, turn_lines};

/// List the turns of a space, session by session in the order in which they were said
#[derive(Debug, Args)]
pub struct TurnsArgs {
    /// The space
    #[arg(long, value_parser = values::space)]
    space: SpaceId,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
    /// Token of a write that the answer must see; repeatable
    #[arg(long, value_name = "TOKEN")]
    wait_for: Vec<BatchId>,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    view: View,
}

/// Show a turn and the turns that it replaces or that replace it, oldest first
#[derive(Debug, Args)]
pub struct TurnArgs {
    /// The turn, as `turns` and `recall` show it
    #[arg(value_name = "TURN_ID")]
    turn: TurnId,
    /// The space
    #[arg(long, value_parser = values::space)]
    space: SpaceId,
}

/// Lists turns.
pub async fn list(args: TurnsArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let filter = args.selection.seen(args.view);
    let turns = at_most(args.limit, async |page| {
        let call = handle.call();
        let list = handle
            .memory
            .list(&call, &args.space, &filter, page, &args.wait_for);
        list.await
    })
    .await?;
    show(&turns, output)
}

/// Shows the versions of a turn.
pub async fn versions(args: TurnArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let call = handle.call();
    let turns = handle.memory.history(&call, &args.space, args.turn).await?;
    show(&turns, output)
}

fn show(turns: &[Turn], output: &mut Output) -> Result<Exit, Error> {
    output.list(turns, turn_json, |palette| human(turns, palette))?;
    Ok(Exit::Done)
}

fn human(turns: &[Turn], palette: Palette) -> String {
    let lines = turns.iter().map(|turn| {
        let lines = turn_lines(palette, "", None, turn);
        match turn.replaced {
            Some(by) => {
                let note = format!("    replaced by {}", printable(&by.by.to_string()));
                format!("{lines}\n{}", palette.warning(&note))
            }
            None => lines,
        }
    });
    lines.collect::<Vec<_>>().join("\n\n")
}
