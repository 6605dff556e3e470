//! `memfleet watch`: what becomes of a write.

use clap::Args;
use futures::TryStreamExt;
use memfleet_domain::ids::{BatchId, SpaceId};
use memfleet_domain::ingestion::{TurnReceipt, TurnState};
use serde_json::{Value, json};

use super::exit::{Error, Exit};
use super::{Handle, values};
use crate::output::{Output, Palette, printable};

/// Follow a write until it is stored
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Token of the write's receipt
    token: BatchId,
    /// Space that was written to
    #[arg(long, value_parser = values::space)]
    space: SpaceId,
}

/// Runs the command.
pub async fn run(args: WatchArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let mut states = handle
        .memory
        .watch(&handle.long_call(), &args.space, args.token)
        .await?;
    let mut last = Vec::new();
    while let Some(turn) = states.try_next().await? {
        output.answer(|| to_json(&turn), |palette| human(&turn, palette))?;
        output.flush()?;
        last.push(turn);
    }
    Ok(exit_of(&last))
}

/// The final states of a batch's turns, once all of them are final.
pub async fn settled(
    handle: &Handle,
    space: &SpaceId,
    batch: BatchId,
) -> Result<Vec<TurnReceipt>, Error> {
    let mut states = handle
        .memory
        .watch(&handle.long_call(), space, batch)
        .await?;
    let mut turns = Vec::<TurnReceipt>::new();
    while let Some(turn) = states.try_next().await? {
        match turns.iter_mut().find(|known| known.id == turn.id) {
            Some(known) => *known = turn,
            None => turns.push(turn),
        }
    }
    Ok(turns)
}

/// A write is refused when one of its turns became a dead letter.
pub fn exit_of(turns: &[TurnReceipt]) -> Exit {
    match turns
        .iter()
        .any(|turn| turn.state == TurnState::DeadLettered)
    {
        true => Exit::Refused,
        false => Exit::Done,
    }
}

/// A state as JSON.
pub fn to_json(turn: &TurnReceipt) -> Value {
    json!({ "turn_id": turn.id, "state": turn.state, "reason": turn.reason })
}

/// A state as a line.
pub fn human(turn: &TurnReceipt, palette: Palette) -> String {
    let state = match turn.state {
        TurnState::Queued => palette.dim("queued"),
        TurnState::Stored => palette.good("stored"),
        TurnState::DeadLettered => palette.warning("dead-lettered"),
        TurnState::Forgotten => palette.dim("forgotten"),
    };
    match &turn.reason {
        Some(reason) => format!("{}  {state}: {}", turn.id, printable(reason)),
        None => format!("{}  {state}", turn.id),
    }
}
