//! `memfleet correct`: says how a fact is.

use clap::{ArgGroup, Args};
use memfleet_domain::Timestamp;
use memfleet_domain::ids::{DerivationId, SpaceId};
use memfleet_domain::time::TimeRange;
use memfleet_ports::knowledge_api::{Correction, UpdateRequest};

use super::exit::{Error, Exit};
use super::{Handle, values};
use crate::output::{Output, derivation_json, held, printable, said};

/// Correct a fact; no extraction overwrites it
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("how").required(true).multiple(true).args(["text", "from", "until", "withdrawn"])))]
pub struct CorrectArgs {
    /// The fact
    id: DerivationId,
    /// The space
    #[arg(long, value_parser = values::space)]
    space: SpaceId,
    /// The right sentence, about the same subject
    #[arg(long, value_name = "SENTENCE")]
    text: Option<String>,
    /// The value alone, where the fact keeps its subject, predicate and object
    #[arg(long, value_name = "VALUE", requires = "text")]
    value: Option<String>,
    /// When it began to hold; by default as before
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    from: Option<Timestamp>,
    /// When it ceased to hold; with `--from` alone it still holds
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    until: Option<Timestamp>,
    /// It was never true
    #[arg(long, conflicts_with_all = ["text", "value", "from", "until"])]
    withdrawn: bool,
    /// Only if the fact is at this version; by default whichever is current
    #[arg(long, value_name = "VERSION", value_parser = values::range(1..=u32::MAX))]
    version: Option<u32>,
}

/// Runs the command.
pub async fn run(args: CorrectArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let is_timed = args.from.is_some() || args.until.is_some();
    let correction = if args.withdrawn {
        Correction::Withdrawn
    } else {
        Correction::Says {
            text: args.text,
            value: args.value,
            valid: is_timed.then_some(TimeRange {
                start: args.from,
                end: args.until,
            }),
        }
    };
    let request = UpdateRequest {
        space: args.space,
        id: args.id,
        version: args.version,
        correction,
    };
    let fact = handle.knowledge.update(&handle.call(), request).await?;
    output.answer(
        || derivation_json(&fact),
        |palette| {
            let held = palette.dim(&held(&fact));
            format!(
                "version {}: {}  {held}",
                fact.version,
                printable(&said(&fact))
            )
        },
    )?;
    Ok(Exit::Done)
}
