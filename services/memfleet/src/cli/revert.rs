//! `memfleet revert`: undoes a change of derived memory.

use clap::Args;
use memfleet_domain::ids::{ChangeId, SpaceId};

use super::exit::{Error, Exit};
use super::{Handle, values};
use crate::output::{Output, change_json, change_lines};

/// Undo a change of derived memory; what it wrote is as it was before
#[derive(Debug, Args)]
pub struct RevertArgs {
    /// The change, as `history` lists it
    change: ChangeId,
    /// The space
    #[arg(long, value_parser = values::space)]
    space: SpaceId,
}

/// Runs the command.
pub async fn run(args: RevertArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let call = handle.call();
    let reverted = handle
        .knowledge
        .revert(&call, &args.space, args.change)
        .await?;
    output.answer(
        || change_json(&reverted),
        |palette| change_lines(palette, &reverted),
    )?;
    Ok(Exit::Done)
}
