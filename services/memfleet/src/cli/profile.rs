//! `memfleet profile`: what is true of a person, and who said so.

use clap::Args;
use memfleet_domain::Timestamp;
use memfleet_domain::ids::{BatchId, SpaceId};
use memfleet_domain::time::AsOf;
use memfleet_ports::knowledge_api::{ProfileLine, ProfileQuery};
use serde_json::{Value, json};

use super::exit::{Error, Exit};
use super::handle::every_told;
use super::{Handle, values};
use crate::output::{Align, Output, Palette, derivation_json, held, listed, table};

/// Show what is true of a person or a thing, and who said so
#[derive(Debug, Args)]
pub struct ProfileArgs {
    /// Who or what, by name
    #[arg(value_name = "NAME")]
    about: String,
    /// The space
    #[arg(long, value_parser = values::space)]
    space: SpaceId,
    /// What held at this instant; by default what holds now
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    at: Option<Timestamp>,
    /// As memfleet knew it at this instant
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    known_at: Option<Timestamp>,
    /// Token of a write that the answer must see, with what is derived from it; repeatable
    #[arg(long, value_name = "TOKEN")]
    wait_for: Vec<BatchId>,
}

/// Runs the command.
pub async fn run(args: ProfileArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let query = ProfileQuery {
        space: args.space,
        about: args.about,
        as_of: AsOf {
            known_at: args.known_at,
            happened_by: args.at,
        },
        wait_for: args.wait_for,
    };
    let lines = every_told(async |page| {
        let call = handle.call();
        handle.knowledge.profile(&call, &query, page).await
    });
    let lines = lines.await?;
    output.list(&lines, to_json, |palette| human(&lines, palette))?;
    Ok(Exit::Done)
}

fn to_json(line: &ProfileLine) -> Value {
    let evidence = &line.evidence;
    let mut value = derivation_json(&line.fact);
    value["evidence"] = json!({
        "turn_id": evidence.turn,
        "session": evidence.session,
        "speaker": evidence.speaker,
        "quote": evidence.quote,
    });
    value["conflicts"] = json!(line.conflicts);
    value
}

fn human(lines: &[ProfileLine], palette: Palette) -> String {
    let columns = [
        ("HELD", Align::Left),
        ("FACT", Align::Left),
        ("SAID BY", Align::Left),
        ("EVIDENCE", Align::Left),
    ];
    let rows = lines.iter().map(|line| {
        let doubt = match line.conflicts.is_empty() {
            true => "",
            false => " (contradicted)",
        };
        [
            held(&line.fact),
            format!("{}{doubt}", listed(&line.fact)),
            line.evidence.speaker.to_string(),
            line.evidence.quote.replace('\n', " "),
        ]
    });
    table(palette, columns, rows)
}
