//! `memfleet facts`: what is known, since when, from which turns.

use clap::Args;
use memfleet_domain::Timestamp;
use memfleet_domain::derivation::Derivation;
use memfleet_domain::ids::{BatchId, SpaceId, TurnId};
use memfleet_domain::time::AsOf;
use memfleet_ports::knowledge_api::FactQuery;

use super::exit::{Error, Exit};
use super::handle::every;
use super::{Handle, values};
use crate::output::{Align, Output, Palette, derivation_json, held, said, table};

/// List the facts that memfleet derived from turns
#[derive(Debug, Args)]
pub struct FactsArgs {
    /// The space
    #[arg(long, value_parser = values::space)]
    space: SpaceId,
    /// Only facts about this person or thing
    #[arg(long, value_name = "NAME", value_parser = values::words)]
    about: Option<String>,
    /// Only facts of this attribute, for example `residence`
    #[arg(long, value_name = "ATTRIBUTE", value_parser = values::words)]
    attribute: Option<String>,
    /// What held at this instant; by default what holds now
    #[arg(long, value_name = "TIME", value_parser = values::instant, conflicts_with = "ended")]
    at: Option<Timestamp>,
    /// As memfleet knew it at this instant
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    known_at: Option<Timestamp>,
    /// Also what holds no longer and what was taken back
    #[arg(long)]
    ended: bool,
    /// Only facts that come from this turn; may be repeated
    #[arg(long = "turn", value_name = "ID")]
    turns: Vec<TurnId>,
    /// Token of a write that the answer must see, with what is derived from it; repeatable
    #[arg(long, value_name = "TOKEN")]
    wait_for: Vec<BatchId>,
}

/// Runs the command.
pub async fn run(args: FactsArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let query = FactQuery {
        space: args.space,
        about: args.about,
        attribute: args.attribute,
        turns: args.turns,
        as_of: AsOf {
            known_at: args.known_at,
            happened_by: args.at,
        },
        ended: args.ended,
        wait_for: args.wait_for,
    };
    let facts = every(async |page| handle.knowledge.facts(&handle.call(), &query, page).await);
    let facts = facts.await?;
    output.list(&facts, derivation_json, |palette| human(&facts, palette))?;
    Ok(Exit::Done)
}

fn human(facts: &[Derivation], palette: Palette) -> String {
    let columns = [
        ("ID", Align::Left),
        ("V", Align::Right),
        ("HELD", Align::Left),
        ("FACT", Align::Left),
    ];
    let rows = facts.iter().map(|fact| {
        [
            fact.id.to_string(),
            fact.version.to_string(),
            held(fact),
            said(fact).into_owned(),
        ]
    });
    table(palette, columns, rows)
}
