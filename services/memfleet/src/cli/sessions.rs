//! `memfleet sessions`: the conversations of a space.

use clap::Args;
use memfleet_domain::space::Session;
use serde_json::{Value, json};

use super::Handle;
use super::exit::{Error, Exit};
use super::handle::every;
use super::place::InSpace;
use crate::output::{Align, Output, Palette, table, time};

/// List the sessions of a space
#[derive(Debug, Args)]
pub struct SessionsArgs {
    #[command(flatten)]
    space: InSpace,
}

/// Runs the command.
pub async fn run(args: SessionsArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let sessions = every(async |page| {
        handle
            .memory
            .sessions(&handle.call(), args.space.name(), page)
            .await
    })
    .await?;
    output.list(&sessions, to_json, |palette| human(&sessions, palette))?;
    Ok(Exit::Done)
}

fn to_json(session: &Session) -> Value {
    json!({
        "session": session.id,
        "turns": session.turns,
        "first_turn_at": session.first_turn_at,
        "last_turn_at": session.last_turn_at,
    })
}

fn human(sessions: &[Session], palette: Palette) -> String {
    let columns = [
        ("SESSION", Align::Left),
        ("TURNS", Align::Right),
        ("FIRST TURN", Align::Left),
        ("LAST TURN", Align::Left),
    ];
    let rows = sessions.iter().map(|session| {
        [
            session.id.to_string(),
            session.turns.to_string(),
            time(session.first_turn_at),
            time(session.last_turn_at),
        ]
    });
    table(palette, columns, rows)
}
