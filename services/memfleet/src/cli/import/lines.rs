//! JSON lines of `memfleet export`, back into a space: turns keep their ids and recorded times.

use std::io;
use std::path::Path;

use futures::StreamExt;
use memfleet_domain::ids::SpaceId;
use memfleet_ports::memory::Record;
use memfleet_rpc::jsonl;

use super::source::Source;
use super::upload::Tally;
use super::{ImportArgs, Located, name_of, wrong};
use crate::cli::exit::Error;
use crate::cli::{Handle, watch};
use crate::output::Progress;

/// Records a call.
const CHUNK: usize = 256;

/// Imports the file into the named space, by default each part into the one that it was exported
/// from; the spaces.
pub async fn import(
    file: &Path,
    source: Source,
    args: &ImportArgs,
    handle: &Handle,
) -> Result<(Vec<SpaceId>, Tally), Error> {
    let progress = Progress::bytes(source.length(), &name_of(file));
    let mut lines = source.lines().zip(1..);
    let mut tally = Tally::default();
    let mut spaces: Vec<_> = args.space.iter().cloned().collect();
    loop {
        let (records, bytes) = chunk(file, &mut lines)?;
        if bytes == 0 {
            break;
        }
        for part in parts(records) {
            if let (None, Some(Record::Space(named, _))) = (&args.space, part.first()) {
                spaces.push(named.clone());
            }
            let Some(target) = spaces.last() else {
                return Err(wrong(
                    file,
                    "does not begin with its space; name one with --space",
                ));
            };
            send(part, target, !args.no_wait, handle, &mut tally).await?;
        }
        progress.advance(bytes);
    }
    match spaces.is_empty() {
        true => Err(wrong(file, "is empty")),
        false => Ok((spaces, tally)),
    }
}

/// Records of one space each; the first part may go on with the space before.
fn parts(records: Vec<Record>) -> Vec<Vec<Record>> {
    let mut parts: Vec<Vec<Record>> = Vec::new();
    for record in records {
        match (&record, parts.last_mut()) {
            (Record::Rules(_) | Record::Turn(_) | Record::Decided(_), Some(part)) => {
                part.push(record);
            }
            _ => parts.push(vec![record]),
        }
    }
    parts
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
    tally.decided += said.decided;
    let left_out = said.left_out.iter().cloned();
    tally
        .left_out
        .extend(left_out.map(|reason| Located::new("a record", reason)));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[String]) -> Vec<Record> {
        let records = lines.iter().map(|line| jsonl::read(line));
        records.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn each_space_of_a_file_is_a_part_and_the_first_may_go_on_with_the_one_before() {
        let space = |name: &str| {
            let settings = r#"{"language":null,"time_zone":"UTC","retention_days":null}"#;
            format!(r#"{{"record":"space","name":"{name}","settings":{settings}}}"#)
        };
        let turn = |number: u32| {
            format!(
                r#"{{"record":"turn","id":"00000000-0000-4000-8000-{number:012}","session":"s","external_id":null,"speaker":"Ada","role":"user","content":{{"text":"Hi","media":[]}},"event_time":null,"recorded_at":"2026-01-02T03:04:05Z","metadata":{{}},"trust":"user","replaces":null,"position":0,"replaced":null}}"#
            )
        };
        let lines = [
            turn(1),
            space("ada"),
            turn(2),
            turn(3),
            space("bob"),
            turn(4),
        ];
        let parts = parts(read(&lines));
        assert_eq!(
            parts,
            [read(&lines[..1]), read(&lines[1..4]), read(&lines[4..])]
        );
    }
}
