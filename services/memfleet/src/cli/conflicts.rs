//! `memfleet conflicts`: which facts contradict each other, and what became of it.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use memfleet_domain::derivation::{Derivation, Status};
use memfleet_domain::ids::SpaceId;
use memfleet_ports::knowledge_api::Disagreement;
use serde_json::{Value, json};

use super::exit::{Error, Exit};
use super::handle::every;
use super::{Handle, values};
use crate::output::{Align, Output, Palette, derivation_json, said, table};

/// List facts that contradict each other
#[derive(Debug, Args)]
pub struct ConflictsArgs {
    /// The space
    #[arg(long, value_parser = values::space)]
    space: SpaceId,
    /// Only conflicts with this status; may be repeated. Without it all but possible ones
    #[arg(long = "status", value_parser = status())]
    statuses: Vec<Status>,
}

fn status() -> impl TypedValueParser<Value = Status> {
    PossibleValuesParser::new(["found", "settled", "open", "dismissed", "possible"]).map(|name| {
        match name.as_str() {
            "settled" => Status::Settled,
            "open" => Status::Open,
            "dismissed" => Status::Dismissed,
            "possible" => Status::Possible,
            _ => Status::Found,
        }
    })
}

/// Runs the command.
pub async fn run(args: ConflictsArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let conflicts = every(async |page| {
        let call = handle.call();
        let conflicts = handle
            .knowledge
            .conflicts(&call, &args.space, &args.statuses, page);
        conflicts.await
    });
    let conflicts = conflicts.await?;
    output.list(&conflicts, to_json, |palette| human(&conflicts, palette))?;
    Ok(Exit::Done)
}

fn to_json(disagreement: &Disagreement) -> Value {
    let conflict = &disagreement.conflict;
    json!({
        "id": conflict.id,
        "status": conflict.status,
        "contradiction": conflict.contradiction,
        "ends": conflict.ends,
        "found_at": conflict.found_at,
        "judge": conflict.judge,
        "probability": conflict.probability,
        "older_id": conflict.older,
        "newer_id": conflict.newer,
        "older": disagreement.older.as_ref().map(derivation_json),
        "newer": disagreement.newer.as_ref().map(derivation_json),
    })
}

fn human(conflicts: &[Disagreement], palette: Palette) -> String {
    let columns = [
        ("STATUS", Align::Left),
        ("OLDER ID", Align::Left),
        ("OLDER", Align::Left),
        ("NEWER ID", Align::Left),
        ("NEWER", Align::Left),
    ];
    let text = |fact: &Option<Derivation>| match fact {
        Some(fact) => said(fact).into_owned(),
        None => "(gone)".to_owned(),
    };
    let rows = conflicts.iter().map(|disagreement| {
        let conflict = &disagreement.conflict;
        let status = match conflict.status {
            Status::Found => "found",
            Status::Settled => "settled",
            Status::Open => "open",
            Status::Dismissed => "dismissed",
            Status::Possible => "possible",
        };
        [
            status.to_owned(),
            conflict.older.to_string(),
            text(&disagreement.older),
            conflict.newer.to_string(),
            text(&disagreement.newer),
        ]
    });
    table(palette, columns, rows)
}
