//! `memfleet timeline`: facts and episodes by when they began.

use clap::Args;
use memfleet_domain::Timestamp;
use memfleet_domain::derivation::{Derivation, Kind};
use memfleet_domain::ids::{BatchId, SpaceId};
use memfleet_domain::time::TimeRange;
use memfleet_ports::knowledge_api::{TimelineOf, TimelineQuery};
use serde_json::{Value, json};

use super::exit::{Error, Exit};
use super::handle::every_told;
use super::{Handle, values};
use crate::output::{Align, Output, Palette, derivation_json, listed, table, time};

/// List facts and episodes in the order in which they began
#[derive(Debug, Args)]
pub struct TimelineArgs {
    /// The space
    #[arg(long, value_parser = values::space)]
    space: SpaceId,
    /// Only facts about this person or thing
    #[arg(long, value_name = "NAME", value_parser = values::words, conflicts_with = "topic")]
    about: Option<String>,
    /// Only what comes from the 50 turns that a search for these words finds best
    #[arg(long, value_name = "TEXT", value_parser = values::words)]
    topic: Option<String>,
    /// What began at this instant or later
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    from: Option<Timestamp>,
    /// What began before this instant
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    until: Option<Timestamp>,
    /// As memfleet knew it at this instant
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    known_at: Option<Timestamp>,
    /// Token of a write that the answer must see, with what is derived from it; repeatable
    #[arg(long, value_name = "TOKEN")]
    wait_for: Vec<BatchId>,
}

/// Runs the command.
pub async fn run(args: TimelineArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let of = match (args.about, args.topic) {
        (Some(name), _) => TimelineOf::About(name),
        (None, Some(words)) => TimelineOf::Topic(words),
        (None, None) => TimelineOf::Space,
    };
    let query = TimelineQuery {
        space: args.space,
        of,
        begins: TimeRange {
            start: args.from,
            end: args.until,
        },
        known_at: args.known_at,
        wait_for: args.wait_for,
    };
    let entries = every_told(async |page| {
        let call = handle.call();
        handle.knowledge.timeline(&call, &query, page).await
    });
    let entries = entries.await?;
    output.list(&entries, to_json, |palette| human(&entries, palette))?;
    Ok(Exit::Done)
}

fn to_json(entry: &Derivation) -> Value {
    let mut value = derivation_json(entry);
    value["at"] = json!(entry.begins());
    value
}

fn human(entries: &[Derivation], palette: Palette) -> String {
    let columns = [
        ("AT", Align::Left),
        ("WHAT", Align::Left),
        ("UNTIL", Align::Left),
        ("SAID", Align::Left),
    ];
    let rows = entries.iter().map(|entry| {
        let kind = match entry.kind() {
            Kind::Fact => "fact",
            _ => "episode",
        };
        let ended = entry.valid.end.filter(|_| entry.kind() == Kind::Fact);
        [
            entry.begins().map(time).unwrap_or_default(),
            kind.to_owned(),
            ended.map(time).unwrap_or_default(),
            listed(entry).into_owned(),
        ]
    });
    table(palette, columns, rows)
}
