//! `memfleet remember`: one turn, from the command line or standard input.

use std::io::{self, IsTerminal, Read};
use std::time::Duration;

use clap::Args;
use memfleet_domain::Timestamp;
use memfleet_domain::ids::{
    BatchId, ExternalId, IdempotencyKey, SessionId, SpaceId, Speaker, TurnId,
};
use memfleet_domain::ingestion::{Receipt, TurnState};
use memfleet_domain::time::AsOf;
use memfleet_domain::turn::{Content, Role, Trust};
use memfleet_ports::knowledge_api::{EntityQuery, NarrativeQuery};
use memfleet_ports::memory::{NewTurn, PageRequest, RememberRequest};
use serde_json::{Value, json};

use super::exit::{Error, Exit};
use super::{Handle, values, watch};
use crate::output::{Output, Palette};

/// How long a command waits at most for what is derived of what it wrote.
const DERIVED: Duration = Duration::from_secs(1);

/// Remember one turn
#[derive(Debug, Args)]
pub struct RememberArgs {
    /// What was said; read from standard input when it is left out
    text: Option<String>,
    /// Space that remembers it; created by its first turn
    #[arg(long, value_parser = values::space)]
    space: SpaceId,
    /// Conversation it belongs to
    #[arg(long, value_parser = values::session)]
    session: SessionId,
    /// Who said it, as prompts will show it
    #[arg(long, value_name = "NAME", default_value = "user", value_parser = values::speaker)]
    speaker: Speaker,
    /// In which part
    #[arg(long, default_value = "user", value_parser = values::role())]
    role: Role,
    /// When it was said: a date, a date-time (UTC or RFC 3339), or how long ago (`2h`)
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    time: Option<Timestamp>,
    /// Your own id of the turn: the same id in the same session is the same turn
    #[arg(long, value_name = "ID", value_parser = values::external_id)]
    external_id: Option<ExternalId>,
    /// A label; repeatable
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = values::label)]
    labels: Vec<(String, String)>,
    /// The turn that this one replaces
    #[arg(long, value_name = "ID")]
    replaces: Option<TurnId>,
    /// Your name for this request: repeating it changes nothing
    #[arg(long, value_name = "KEY", value_parser = values::idempotency_key)]
    idempotency_key: Option<IdempotencyKey>,
    /// Return when the turn is durable, not only when it is found and what is derived of it can be read (waited for 1 s at most)
    #[arg(long)]
    no_wait: bool,
}

/// Runs the command.
pub async fn run(args: RememberArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let text = match args.text {
        Some(text) => text,
        None => standard_input()?,
    };
    let turn = NewTurn {
        session: args.session,
        external_id: args.external_id,
        speaker: args.speaker,
        role: args.role,
        content: Content {
            text,
            media: Vec::new(),
        },
        event_time: args.time,
        metadata: args.labels.into_iter().collect(),
        trust: Trust::of_role(args.role),
        replaces: args.replaces,
    };
    let request = RememberRequest {
        space: args.space.clone(),
        turns: vec![turn],
        idempotency_key: args.idempotency_key,
    };
    let mut receipt = handle.memory.remember(&handle.call(), request).await?;
    let waited = if args.no_wait {
        Ok(())
    } else {
        let settled = watch::settled(handle, &args.space, receipt.batch).await;
        settled.map(|turns| receipt.turns = turns)
    };
    if !args.no_wait && waited.is_ok() {
        derived(handle, &args.space, receipt.batch).await;
    }
    // Also when the wait was cut short: the turn is accepted all the same.
    output.answer(|| to_json(&receipt), |palette| human(&receipt, palette))?;
    waited.map(|()| watch::exit_of(&receipt.turns))
}

/// Returns when facts, stories and the graph are as a write leaves them, or when a second is over: the next command then reads
/// them. Where they cannot be read there is nothing to wait for.
async fn derived(handle: &Handle, space: &SpaceId, batch: BatchId) {
    let call = handle.call().at_most(DERIVED);
    let narratives = NarrativeQuery {
        space: space.clone(),
        as_of: AsOf::default(),
        wait_for: vec![batch],
    };
    let entities = EntityQuery {
        space: space.clone(),
        prefix: String::new(),
        wait_for: vec![batch],
    };
    let one = || PageRequest {
        limit: 1,
        after: None,
    };
    let _read = tokio::join!(
        handle.knowledge.narratives(&call, &narratives, one()),
        handle.knowledge.entities(&call, &entities, one()),
    );
}

fn standard_input() -> Result<String, Error> {
    if io::stdin().is_terminal() {
        eprintln!("reading the turn from standard input; end it with Ctrl-D");
    }
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .map_err(Error::file("standard input"))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// A receipt as JSON.
pub fn to_json(receipt: &Receipt) -> Value {
    json!({
        "token": receipt.batch,
        "duplicate": receipt.duplicate,
        "turns": receipt.turns.iter().map(watch::to_json).collect::<Vec<_>>(),
    })
}

fn human(receipt: &Receipt, palette: Palette) -> String {
    let done = match receipt.turns.first().map(|turn| turn.state) {
        _ if receipt.duplicate => "was there already",
        Some(TurnState::Stored) => "stored",
        Some(TurnState::DeadLettered) => "not stored",
        _ => "accepted",
    };
    let turns = receipt
        .turns
        .iter()
        .map(|turn| watch::human(turn, palette))
        .collect::<Vec<_>>()
        .join("\n");
    format!("{}  token {}\n{turns}", palette.strong(done), receipt.batch)
}
