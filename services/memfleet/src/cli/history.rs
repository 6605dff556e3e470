//! `memfleet history`: what changed in derived memory, or the versions of one memory.

use clap::Args;
use memfleet_domain::derivation::Derivation;
use memfleet_domain::ids::{DerivationId, SpaceId};

use super::exit::{Error, Exit};
use super::handle::every;
use super::{Handle, values};
use crate::output::{
    Align, Output, Palette, change_json, change_lines, derivation_json, held, said, table, time,
};

/// Show what changed in derived memory, newest first, or the versions of one memory
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// A fact, an episode, a fragment, a narrative or what a caller said of two names; without one every change of the space
    id: Option<DerivationId>,
    /// The space
    #[arg(long, value_parser = values::space)]
    space: SpaceId,
}

/// Runs the command.
pub async fn run(args: HistoryArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let space = &args.space;
    if let Some(id) = args.id {
        let versions = handle.knowledge.versions(&handle.call(), space, id).await?;
        output.list(&versions, derivation_json, |palette| {
            human(&versions, palette)
        })?;
        return Ok(Exit::Done);
    }
    let changes = every(async |page| {
        let call = handle.call();
        handle.knowledge.changes(&call, space, None, page).await
    });
    let changes = changes.await?;
    output.list(&changes, change_json, |palette| {
        let lines = changes.iter().map(|change| change_lines(palette, change));
        lines.collect::<Vec<_>>().join("\n")
    })?;
    Ok(Exit::Done)
}

fn human(versions: &[Derivation], palette: Palette) -> String {
    let columns = [
        ("V", Align::Right),
        ("KNOWN SINCE", Align::Left),
        ("HELD", Align::Left),
        ("CHANGE", Align::Left),
        ("TEXT", Align::Left),
    ];
    let rows = versions.iter().map(|version| {
        [
            version.version.to_string(),
            version.known.start.map(time).unwrap_or_default(),
            held(version),
            version.change.to_string(),
            said(version).into_owned(),
        ]
    });
    table(palette, columns, rows)
}
