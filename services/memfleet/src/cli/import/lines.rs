//! JSON lines of `memfleet export`, back into a space: turns keep their ids and recorded times.

use std::io;
use std::path::Path;

use futures::StreamExt;
use memfleet_domain::ids::SpaceId;
use memfleet_ports::memory::Record;
use memfleet_rpc::jsonl;

use super::source::Source;
use super::upload::Tally;
use super::{ImportArgs, name_of, wrong};
use crate::cli::exit::Error;
use crate::cli::{Handle, watch};
use crate::output::Progress;

/// Records a call.
const CHUNK: usize = 256;

/// Imports the file into the named space, by default the one that it was exported from.
pub async fn import(
    file: &Path,
    source: Source,
    args: &ImportArgs,
    handle: &Handle,
) -> Result<(SpaceId, Tally), Error> {
    let progress = Progress::bytes(source.length(), &name_of(file));
    let mut lines = source.lines().zip(1..);
    let mut tally = Tally::default();
    let mut space = args.space.clone();
    loop {
        let (records, bytes) = chunk(file, &mut lines)?;
        if bytes == 0 {
            break;
        }
        if let (None, Some(Record::Space(named, _))) = (&space, records.first()) {
            space = Some(named.clone());
        }
        let Some(target) = &space else {
            return Err(wrong(
                file,
                "does not begin with its space; name one with --space",
            ));
        };
        send(records, target, !args.no_wait, handle, &mut tally).await?;
        progress.advance(bytes);
    }
    let space = space.ok_or_else(|| wrong(file, "is empty"))?;
    Ok((space, tally))
}

/// The next records, and how many bytes of the file they take.
fn chunk(
    file: &Path,
    lines: &mut impl Iterator<Item = (io::Result<String>, usize)>,
) -> Result<(Vec<Record>, u64), Error> {
    let mut records = Vec::with_capacity(CHUNK);
    let mut bytes = 0;
    for (line, number) in lines.take(CHUNK) {
        let line = line.map_err(Error::file(file))?;
        bytes += line.len() as u64 + 1;
        if !line.trim().is_empty() {
            records.push(
                jsonl::read(&line)
                    .map_err(|error| wrong(file, &format!("line {number}: {error}")))?,
            );
        }
    }
    Ok((records, bytes))
}

async fn send(
    records: Vec<Record>,
    space: &SpaceId,
    wait: bool,
    handle: &Handle,
    tally: &mut Tally,
) -> Result<(), Error> {
    let records = futures::stream::iter(records.into_iter().map(Ok)).boxed();
    let said = handle
        .memory
        .import(&handle.long_call(), space, records)
        .await?;
    if !wait || said.batches.is_empty() {
        tally.accepted += said.accepted;
        tally.skipped += said.duplicates;
        tally.forgotten += said.forgotten;
        return Ok(());
    }
    let mut turns = Vec::new();
    for batch in &said.batches {
        turns.extend(watch::settled(handle, space, *batch).await?);
    }
    tally.add_import(&said, turns);
    Ok(())
}
