//! `memfleet injections`: what entered which prompt.

use clap::Args;
use memfleet_domain::Timestamp;
use memfleet_domain::assembly::Reason;
use memfleet_domain::ids::{InjectionId, SessionId, SpaceId, TurnId};
use memfleet_domain::time::TimeRange;
use memfleet_ports::injections::InjectionFilter;
use memfleet_ports::injections_api::PastInjection;
use serde_json::{Value, json};

use super::exit::{Error, Exit};
use super::handle::at_most;
use super::{Handle, assemble, values};
use crate::output::{Align, Output, Palette, printable, table, time};

/// List what entered which prompt, the newest first; with an id, print the block that did, alone on standard output
#[derive(Debug, Args)]
pub struct InjectionsArgs {
    /// Only this one
    #[arg(conflicts_with_all = ["space", "session", "turn", "since", "until", "limit"])]
    id: Option<InjectionId>,
    /// Only those that searched this space; needed with a key that does not reach all of them
    #[arg(long, value_parser = values::space)]
    space: Option<SpaceId>,
    /// Only those of this session
    #[arg(long, value_parser = values::session)]
    session: Option<SessionId>,
    /// Only those that injected this turn of the space
    #[arg(long, value_name = "ID", requires = "space")]
    turn: Option<TurnId>,
    /// Only those from then on
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    since: Option<Timestamp>,
    /// Only those before then
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    until: Option<Timestamp>,
    /// How many at most
    #[arg(long, short = 'n', default_value_t = 100)]
    limit: usize,
}

/// Runs the command.
pub async fn run(
    args: InjectionsArgs,
    handle: &Handle,
    output: &mut Output,
) -> Result<Exit, Error> {
    match args.id {
        Some(id) => one(id, handle, output).await,
        None => list(args, handle, output).await,
    }
}

async fn one(id: InjectionId, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let injection = handle.audit.injection(&handle.call(), id).await?;
    if output.is_json() {
        output.json(&to_json(&injection))?;
        return Ok(Exit::Done);
    }
    let block = injection.block.as_deref().unwrap_or_default();
    output.text(block.trim_end_matches('\n'))?;
    output.flush()?;
    eprintln!("{}", told(&injection));
    Ok(Exit::Done)
}

async fn list(args: InjectionsArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let filter = InjectionFilter {
        session: args.session,
        turn: args.space.clone().zip(args.turn),
        space: args.space,
        time: TimeRange {
            start: args.since,
            end: args.until,
        },
    };
    let read = async |page| {
        let call = handle.call();
        handle.audit.injections(&call, filter.clone(), page).await
    };
    let injections = at_most(args.limit, read).await?;
    output.list(&injections, to_json, |palette| human(&injections, palette))?;
    Ok(Exit::Done)
}

fn to_json(injection: &PastInjection) -> Value {
    let hex = |hash: [u8; 32]| blake3::Hash::from_bytes(hash).to_hex().to_string();
    json!({
        "id": injection.id,
        "at": injection.at,
        "caller": injection.caller,
        "request_id": injection.request_id,
        "session": injection.session,
        "exchange": injection.exchange,
        "spaces": injection.spaces,
        "answer": assemble::to_json(&injection.answer, &assemble::Texts::default()),
        "block": injection.block,
        "block_hash": injection.block_hash.map(hex),
        "forgotten": injection.forgotten,
    })
}

/// What it was, on one line, and why there may be no block.
fn told(injection: &PastInjection) -> String {
    let answer = &injection.answer;
    let missing = match &injection.block {
        Some(_) => "",
        None if injection.forgotten => "; a turn in it was forgotten, and the block with it",
        None if injection.block_hash.is_some() => "; the policy keeps no blocks (`audit.mode`)",
        None => "; nothing was injected",
    };
    let reason = answer.reason.map_or(String::new(), |it| format!(" ({it})"));
    format!(
        "{} {}{reason}, {} items, {} tokens{missing}",
        time(injection.at),
        answer.decision,
        answer.items.len(),
        answer.tokens,
    )
}

fn human(injections: &[PastInjection], palette: Palette) -> String {
    let columns = [
        ("TIME", Align::Left),
        ("ID", Align::Left),
        ("DECISION", Align::Left),
        ("REASON", Align::Left),
        ("ITEMS", Align::Right),
        ("TOKENS", Align::Right),
        ("SPACES", Align::Left),
        ("SESSION", Align::Left),
    ];
    let rows = injections.iter().map(|injection| {
        let answer = &injection.answer;
        let spaces: Vec<_> = injection.spaces.iter().map(SpaceId::as_str).collect();
        let session = injection.session.as_ref();
        [
            time(injection.at),
            injection.id.to_string(),
            answer.decision.to_string(),
            answer.reason.map_or("-", Reason::name).to_owned(),
            answer.items.len().to_string(),
            answer.tokens.to_string(),
            printable(&spaces.join(" ")),
            session.map_or_else(|| "-".to_owned(), |session| printable(session.as_str())),
        ]
    });
    table(palette, columns, rows)
}
