//! `memfleet export`: a space as JSON lines, which `memfleet import` reads back.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::Args;
use futures::TryStreamExt;
use memfleet_rpc::jsonl;

use super::Handle;
use super::exit::{Error, Exit};
use super::filter::{Selection, View};
use super::place::InSpace;
use crate::output::Output;

/// Write a space as JSON lines
#[derive(Debug, Args)]
pub struct ExportArgs {
    #[command(flatten)]
    space: InSpace,
    /// File to write; standard output when it is left out
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    view: View,
}

/// Runs the command.
pub async fn run(args: ExportArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let filter = args.selection.seen(args.view);
    let mut records = handle
        .memory
        .export(&handle.long_call(), args.space.name(), &filter)
        .await?;
    let Some(path) = args.output else {
        while let Some(record) = records.try_next().await? {
            output.text(&jsonl::write(&record))?;
        }
        return Ok(Exit::Done);
    };
    let failed = || Error::file(&path);
    let mut file = BufWriter::new(File::create(&path).map_err(failed())?);
    while let Some(record) = records.try_next().await? {
        writeln!(file, "{}", jsonl::write(&record)).map_err(failed())?;
    }
    file.flush().map_err(failed())?;
    Ok(Exit::Done)
}
