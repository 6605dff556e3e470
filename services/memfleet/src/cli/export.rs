//! `memfleet export`: a space, or one person in all spaces, as JSON lines, which `memfleet import`
//! reads back.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use futures::TryStreamExt;
use memfleet_domain::ids::SpaceId;
use memfleet_rpc::jsonl;
use tempfile::NamedTempFile;

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
    let mut file = Target::create(path, args.overwrite)?;
    while let Some(record) = records.try_next().await? {
        file.line(&jsonl::write(&record))?;
    }
    file.finish()?;
    Ok(Exit::Done)
}

/// A file that is there once all of it is written.
struct Target {
    path: PathBuf,
    overwrite: bool,
    file: BufWriter<NamedTempFile>,
}

impl Target {
    fn create(path: PathBuf, overwrite: bool) -> Result<Self, Error> {
        if path.exists() && !(overwrite && path.is_file()) {
            return Err(exists(&path));
        }
        let beside = path.parent().filter(|it| !it.as_os_str().is_empty());
        let file = NamedTempFile::new_in(beside.unwrap_or(Path::new(".")));
        Ok(Self {
            file: BufWriter::new(file.map_err(Error::file(&path))?),
            path,
            overwrite,
        })
    }

    fn line(&mut self, line: &str) -> Result<(), Error> {
        let written = writeln!(self.file, "{line}");
        written.map_err(Error::file(&self.path))
    }

    fn finish(self) -> Result<(), Error> {
        let failed = || Error::file(&self.path);
        let file = self.file.into_inner();
        let file = file
            .map_err(io::IntoInnerError::into_error)
            .map_err(failed())?;
        file.as_file().sync_all().map_err(failed())?;
        let placed = match self.overwrite {
            true => file.persist(&self.path),
            false => file.persist_noclobber(&self.path),
        };
        match placed {
            Ok(_) => Ok(()),
            Err(refused) if refused.error.kind() == ErrorKind::AlreadyExists => {
                Err(exists(&self.path))
            }
            Err(refused) => Err(failed()(refused.error)),
        }
    }
}

fn exists(path: &Path) -> Error {
    Error::Refused(format!(
        "{} exists: name another file, or give --overwrite",
        path.display()
    ))
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
    fn a_file_is_there_once_it_is_whole_and_written_over_only_where_it_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ada.jsonl");
        let mut cut_off = Target::create(path.clone(), false).unwrap();
        cut_off.line("{}").unwrap();
        drop(cut_off);
        assert_eq!(directory.path().read_dir().unwrap().count(), 0);
        let write = |line: &str, overwrite| {
            let mut target = Target::create(path.clone(), overwrite)?;
            target.line(line)?;
            target.finish()
        };
        write("first", false).unwrap();
        let error = write("second", false).unwrap_err();
        assert_eq!(error.exit(), Exit::Refused);
        assert!(error.to_string().contains("--overwrite"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "first\n");
        write("second", true).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "second\n");
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
