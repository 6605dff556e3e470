//! `memfleet import`: conversations from files. Ids come from what the files say, so a second run, or a run after one that
//! was cut off, skips what is there.

mod anthropic;
mod dataset;
mod envelopes;
mod format;
mod lines;
mod messages;
mod openai;
mod upload;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use memfleet_domain::ids::{SessionId, SpaceId};
use memfleet_ports::memory::NewTurn;
use serde_json::{Value, json};

use super::exit::{Error, Exit};
use super::{Handle, values};
use crate::output::{Output, Palette, Progress, count, printable};
use format::Format;
use upload::{Tally, Upload};

/// Import conversations from files
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// Files to read
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Space for everything; by default each conversation gets a space of its own name
    #[arg(long, value_parser = values::space)]
    space: Option<SpaceId>,
    /// Format of the files; told from what they hold when it is left out
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Return when the turns are durable, not when they can be found
    #[arg(long)]
    no_wait: bool,
}

/// A conversation on its way into a space.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    /// Its name in the file: the space it goes to, unless one is named.
    pub name: String,
    /// Its turns, in the order in which they were said.
    pub turns: Vec<NewTurn>,
}

/// What became of a file.
struct Report<'a> {
    file: &'a Path,
    format: Format,
    spaces: Vec<SpaceId>,
    tally: Tally,
}

/// Runs the command.
pub async fn run(args: ImportArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let mut exit = Exit::Done;
    for file in &args.files {
        let report = import(file, &args, handle).await?;
        if !report.tally.dead_letters.is_empty() {
            exit = Exit::Refused;
        }
        output.answer(|| report.to_json(), |palette| report.human(palette))?;
        output.flush()?;
    }
    Ok(exit)
}

async fn import<'a>(
    file: &'a Path,
    args: &ImportArgs,
    handle: &Handle,
) -> Result<Report<'a>, Error> {
    if args.format == Some(Format::Export) || (args.format.is_none() && lines::is_export(file)?) {
        let (space, tally) = lines::import(file, args, handle).await?;
        return Ok(Report {
            file,
            format: Format::Export,
            spaces: vec![space],
            tally,
        });
    }
    let (format, conversations) = read(file, args.format)?;
    let total = conversations.iter().map(|one| one.turns.len() as u64).sum();
    let progress = Progress::turns(total, &name_of(file));
    let mut upload = Upload::new(handle, &progress, !args.no_wait);
    let mut spaces = Vec::new();
    for conversation in conversations {
        let (space, turns) =
            placed(conversation, args.space.as_ref()).map_err(|problem| wrong(file, &problem))?;
        upload.send(&space, turns).await?;
        if !spaces.contains(&space) {
            spaces.push(space);
        }
    }
    Ok(Report {
        file,
        format,
        spaces,
        tally: upload.finish().await?,
    })
}

/// The conversations of a file that is not an export.
fn read(file: &Path, format: Option<Format>) -> Result<(Format, Vec<Conversation>), Error> {
    let text = fs::read_to_string(file).map_err(Error::file(file))?;
    let documents = format::documents(&text).map_err(|problem| wrong(file, &problem))?;
    if format::are_empty(&documents) {
        return Err(wrong(file, "holds no conversation"));
    }
    let Some(format) = format.or_else(|| format::detect(&documents)) else {
        return Err(wrong(
            file,
            "is in no format that is known; docs/cli.md says what each holds, --format names one",
        ));
    };
    let conversations = match format {
        Format::Locomo | Format::Plain => dataset::conversations(&text),
        Format::Openai => envelopes::conversations(documents, &name_of(file), openai::messages),
        Format::Anthropic => {
            envelopes::conversations(documents, &name_of(file), anthropic::messages)
        }
        Format::Export => Err("is no export of memfleet".to_owned()),
    };
    Ok((
        format,
        conversations.map_err(|problem| wrong(file, &problem))?,
    ))
}

/// Where a conversation goes. In a space that it shares with others its sessions carry its name.
fn placed(
    conversation: Conversation,
    space: Option<&SpaceId>,
) -> Result<(SpaceId, Vec<NewTurn>), String> {
    let Conversation { name, mut turns } = conversation;
    let Some(space) = space else {
        let space =
            SpaceId::new(&*name).map_err(|error| format!("the conversation's name {error}"))?;
        return Ok((space, turns));
    };
    for turn in &mut turns {
        if turn.session.as_str() != name {
            turn.session = SessionId::new(format!("{name}/{}", turn.session))
                .map_err(|error| format!("the session's name {error}"))?;
        }
    }
    Ok((space.clone(), turns))
}

/// The name of a file without its folder and its extension.
fn name_of(file: &Path) -> String {
    file.file_stem()
        .unwrap_or(file.as_os_str())
        .to_string_lossy()
        .into_owned()
}

/// A file that says something wrong.
fn wrong(file: &Path, problem: &str) -> Error {
    Error::Usage(format!("{}: {problem}", file.display()))
}

impl Report<'_> {
    fn to_json(&self) -> Value {
        let Tally {
            stored,
            accepted,
            skipped,
            forgotten,
            dead_letters,
        } = &self.tally;
        let dead_letters = dead_letters
            .iter()
            .map(|(turn, reason)| json!({ "turn": turn, "reason": reason }));
        json!({
            "file": self.file,
            "format": self.format.name(),
            "spaces": self.spaces,
            "stored": stored,
            "accepted": accepted,
            "skipped": skipped,
            "forgotten": forgotten,
            "dead_letters": dead_letters.collect::<Vec<_>>(),
        })
    }

    fn human(&self, palette: Palette) -> String {
        let Tally {
            stored,
            accepted,
            skipped,
            forgotten,
            dead_letters,
        } = &self.tally;
        let numbers = [
            (*stored, "stored"),
            (*accepted, "accepted"),
            (*skipped, "there already"),
            (*forgotten, "forgotten before and not brought back"),
        ];
        let parts = numbers.iter().filter(|(number, _)| *number > 0);
        let parts = parts
            .map(|(number, what)| format!("{} {what}", count(*number, "turn")))
            .collect::<Vec<_>>();
        let spaces = match self.spaces.as_slice() {
            [space] => printable(space.as_str()),
            spaces => count(spaces.len() as u64, "space"),
        };
        let heading = palette.strong(&printable(&self.file.display().to_string()));
        let refused = dead_letters.iter().map(|(turn, reason)| {
            palette.warning(&format!("  refused {turn}: {}", printable(reason)))
        });
        let first = format!(
            "{heading} ({}) to {spaces}: {}",
            self.format.name(),
            parts.join(", ")
        );
        std::iter::once(first)
            .chain(refused)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

#[cfg(test)]
mod tests;
