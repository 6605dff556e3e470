//! `memfleet dead-letters`: what could not be stored, why, and once more.

use std::collections::HashSet;

use clap::{Args, Subcommand};
use memfleet_domain::ids::SpaceId;
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::queue::DeadLetter;
use serde_json::{Value, json};

use super::exit::{Error, Exit};
use super::handle::every;
use super::{Handle, values};
use crate::output::{Align, Output, Palette, count, printable, table, time, turn_json};

/// List what could not be stored, or try it again
#[derive(Debug, Args)]
pub struct DeadLettersArgs {
    #[command(subcommand)]
    command: DeadLettersCommand,
}

#[derive(Debug, Subcommand)]
enum DeadLettersCommand {
    /// List the dead letters of a space, or of all
    List {
        /// The space; all of them where it is left out
        #[arg(long, value_name = "SPACE", value_parser = values::space)]
        space: Option<SpaceId>,
        #[arg(hide = true, value_name = "SPACE", value_parser = values::space, conflicts_with = "space")]
        first: Option<SpaceId>,
    },
    /// Put dead letters back into the queue
    Replay {
        /// The space
        #[arg(long, value_name = "SPACE", value_parser = values::space, required_unless_present = "positions")]
        space: Option<SpaceId>,
        /// Positions as `list` shows them; all of the space when there is none
        // Without `--space` the first of them is the space.
        #[arg(value_name = "POSITION")]
        positions: Vec<String>,
    },
}

/// Runs the command.
pub async fn run(
    args: DeadLettersArgs,
    handle: &Handle,
    output: &mut Output,
) -> Result<Exit, Error> {
    match args.command {
        DeadLettersCommand::List { space, first } => {
            let space = space.or(first);
            let letters = every(async |page| {
                handle
                    .maintenance
                    .dead_letters(&handle.call(), space.as_ref(), page)
                    .await
            })
            .await?;
            output.list(&letters, to_json, |palette| human(&letters, palette))?;
        }
        DeadLettersCommand::Replay { space, positions } => {
            let (space, positions) = replayed(space, positions)?;
            let replayed = handle
                .maintenance
                .replay(&handle.call(), &space, &positions)
                .await?;
            output.answer(
                || json!({ "replayed": replayed }),
                |_| format!("{} queued again", count(replayed, "write")),
            )?;
            if replayed < positions.iter().collect::<HashSet<_>>().len() as u64 {
                let message = format!(
                    "a position names no dead letter; `memfleet dead-letters list --space {space}` shows them"
                );
                return Err(Fault::new(FaultKind::NotFound, "NOT_FOUND", message).into());
            }
        }
    }
    Ok(Exit::Done)
}

/// The space and the positions of a replay.
fn replayed(
    space: Option<SpaceId>,
    mut arguments: Vec<String>,
) -> Result<(SpaceId, Vec<u64>), Error> {
    let space = match space {
        Some(space) => space,
        None => values::space(&arguments.remove(0))
            .map_err(|error| Error::Usage(format!("--space {error}")))?,
    };
    let number = |text: &String| {
        let wrong = || {
            Error::Usage(format!(
                "{text:?} is no position; `memfleet dead-letters list` shows them"
            ))
        };
        text.parse().map_err(|_| wrong())
    };
    let positions = arguments.iter().map(number).collect::<Result<_, _>>()?;
    Ok((space, positions))
}

fn to_json(letter: &DeadLetter) -> Value {
    json!({
        "position": letter.acceptance,
        "space": letter.batch.scope.space,
        "token": letter.batch.id,
        "reason": letter.reason,
        "failed_at": letter.failed_at,
        "attempts": letter.attempts,
        "turns": letter.batch.turns.iter().map(turn_json).collect::<Vec<_>>(),
    })
}

fn human(letters: &[DeadLetter], palette: Palette) -> String {
    let columns = [
        ("POSITION", Align::Right),
        ("SPACE", Align::Left),
        ("FAILED", Align::Left),
        ("TRIES", Align::Right),
        ("TURNS", Align::Right),
        ("REASON", Align::Left),
    ];
    let rows = letters.iter().map(|letter| {
        [
            letter.acceptance.to_string(),
            printable(letter.batch.scope.space.as_str()),
            time(letter.failed_at),
            letter.attempts.to_string(),
            letter.batch.turns.len().to_string(),
            letter.reason.clone(),
        ]
    });
    table(palette, columns, rows)
}
