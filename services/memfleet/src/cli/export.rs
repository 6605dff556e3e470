//! `memfleet export`: a space, or one person in all spaces, as JSON lines, which `memfleet import`
//! reads back.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use futures::TryStreamExt;
use memfleet_domain::ids::SpaceId;
use memfleet_rpc::jsonl;

use super::exit::{Error, Exit};
use super::filter::{Selection, View};
use super::subject::WhoseTurns;
use super::{Handle, values};
use crate::output::Output;

/// Write a space, or what one person said in all spaces, as JSON lines
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The space
    #[arg(long, value_name = "SPACE", value_parser = values::space, required_unless_present_any = ["first", "subject"], conflicts_with = "subject")]
    space: Option<SpaceId>,
    #[arg(hide = true, value_name = "SPACE", value_parser = values::space, conflicts_with_all = ["space", "subject"])]
    first: Option<SpaceId>,
    /// File to write, which must not exist; standard output when it is left out
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write over a file that exists
    #[arg(long, requires = "output")]
    overwrite: bool,
    #[command(flatten)]
    whose: WhoseTurns,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    view: View,
}

/// Runs the command.
pub async fn run(args: ExportArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let filter = args.selection.seen(args.view);
    let call = handle.long_call();
    let mut records = match args.whose.subject(&filter)? {
        Some(subject) => handle.memory.export_subject(&call, &subject).await?,
        None => {
            let space = args.space.or(args.first);
            let space = space.expect("the parser takes a space or a person");
            handle.memory.export(&call, &space, &filter).await?
        }
    };
    let Some(path) = args.output else {
        while let Some(record) = records.try_next().await? {
            output.text(&jsonl::write(&record))?;
        }
        return Ok(Exit::Done);
    };
    let failed = || Error::file(&path);
    let mut file = BufWriter::new(created(&path, args.overwrite)?);
    while let Some(record) = records.try_next().await? {
        writeln!(file, "{}", jsonl::write(&record)).map_err(failed())?;
    }
    file.flush().map_err(failed())?;
    Ok(Exit::Done)
}

/// A file to write to.
fn created(path: &Path, overwrite: bool) -> Result<File, Error> {
    let file = match overwrite {
        true => File::create(path),
        false => File::create_new(path),
    };
    file.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Error::Refused(format!(
            "{} exists: name another file, or give --overwrite",
            path.display()
        )),
        _ => Error::file(path)(error),
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        export: ExportArgs,
    }

    #[test]
    fn a_file_that_exists_is_written_over_only_where_it_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ada.jsonl");
        created(&path, false).unwrap();
        let error = created(&path, false).unwrap_err();
        assert_eq!(error.exit(), Exit::Refused);
        assert!(error.to_string().contains("--overwrite"), "{error}");
        created(&path, true).unwrap();
    }

    #[test]
    fn an_export_is_of_a_space_or_of_a_person() {
        let parse = |arguments: &[&str]| Line::try_parse_from([&["export"], arguments].concat());
        for right in [
            &["ada"][..],
            &["--space", "ada", "--speaker", "Ada"],
            &[
                "--subject",
                "Ada",
                "--alias",
                "A. Lovelace",
                "-o",
                "ada.jsonl",
            ],
        ] {
            assert!(parse(right).is_ok(), "{right:?}");
        }
        for wrong in [
            &[][..],
            &["ada", "--space", "bob"],
            &["ada", "--subject", "Ada"],
            &["--space", "ada", "--subject", "Ada"],
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
        for (wrong, named) in [
            (["--subject", "Ada", "--session", "s1"], "--space"),
            (["--space", "ada", "--alias", "A. Lovelace"], "--subject"),
        ] {
            let line = parse(&wrong).unwrap().export;
            let filter = line.selection.seen(line.view);
            let error = line.whose.subject(&filter).unwrap_err();
            assert_eq!(error.exit(), Exit::Usage);
            assert!(error.to_string().contains(named), "{error}");
        }
    }
}
