//! `memfleet import`: conversations from files. Ids come from what the files say, so a second run, or a run after one that
//! was cut off, skips what is there.

mod anthropic;
mod dataset;
mod envelopes;
mod format;
mod lines;
mod messages;
mod openai;
mod source;
mod upload;

use std::path::{Path, PathBuf};

use clap::Args;
use memfleet_domain::ids::{SessionId, SpaceId};
use memfleet_ports::memory::NewTurn;
use serde_json::{Value, json};

use super::exit::{Error, Exit};
use super::{Handle, values};
use crate::output::{Output, Palette, Progress, count, printable};
use crate::said::fitted;
use format::Format;
use source::Source;
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
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conversation {
    /// Its name in the file: the space it goes to, unless one is named.
    pub name: String,
    /// Its turns, in the order in which they were said.
    pub turns: Vec<Located<NewTurn>>,
    /// Messages that cannot be read, and why.
    pub left_out: Vec<Located<String>>,
}

/// Something of a file, and the message or line that it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located<T> {
    /// Place as messages name it: `messages[3]`, `line 7`.
    pub place: String,
    /// The thing.
    pub value: T,
}

impl<T> Located<T> {
    /// A thing at a place.
    pub fn new(place: impl Into<String>, value: T) -> Self {
        Self {
            place: place.into(),
            value,
        }
    }
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
    let source = Source::open(file)?;
    if args.format == Some(Format::Export) || (args.format.is_none() && source.is_export()) {
        let (spaces, tally) = lines::import(file, source, args, handle).await?;
        return Ok(Report {
            file,
            format: Format::Export,
            spaces,
            tally,
        });
    }
    let Content {
        format,
        conversations,
        left_out,
    } = read(file, source, args.format)?;
    let total = conversations.iter().map(|one| one.turns.len() as u64).sum();
    let progress = Progress::turns(total, &name_of(file));
    let mut upload = Upload::new(handle, &progress, !args.no_wait);
    upload.leave_out(left_out);
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

/// A file that is not an export, as it was read.
#[derive(Debug)]
struct Content {
    format: Format,
    conversations: Vec<Conversation>,
    /// Lines and messages that cannot be read, and why.
    left_out: Vec<Located<String>>,
}

/// Reads a file that is not an export. One of which nothing can be read is refused.
fn read(file: &Path, source: Source, format: Option<Format>) -> Result<Content, Error> {
    let text = format::text(&source.bytes().map_err(Error::file(file))?);
    let (documents, mut left_out) =
        format::documents(&text).map_err(|problem| wrong(file, &problem))?;
    if format::are_empty(&documents) {
        return Err(wrong(file, "holds no conversation"));
    }
    let Some(format) = format.or_else(|| format::detect(&documents)) else {
        return Err(wrong(
            file,
            "is in no format that is known; docs/cli.md says what each holds, --format names one",
        ));
    };
    let lists = |read| Ok(envelopes::conversations(documents, &name_of(file), read));
    let conversations = match format {
        Format::Locomo | Format::Plain => dataset::conversations(&text).map(|all| (all, vec![])),
        Format::Openai => lists(openai::read),
        Format::Anthropic => lists(anthropic::read),
        Format::Export => Err("is no export of memfleet".to_owned()),
    };
    let (mut conversations, no_lists) = conversations.map_err(|problem| wrong(file, &problem))?;
    left_out.extend(no_lists);
    for conversation in &mut conversations {
        left_out.append(&mut conversation.left_out);
    }
    if let (true, Some(first)) = (
        conversations.iter().all(|one| one.turns.is_empty()),
        left_out.first(),
    ) {
        return Err(wrong(
            file,
            &format!(
                "holds no message that can be read: {}: {}",
                first.place, first.value
            ),
        ));
    }
    Ok(Content {
        format,
        conversations,
        left_out,
    })
}

/// Where a conversation goes. In a space that it shares with others its sessions carry its name.
fn placed(
    conversation: Conversation,
    space: Option<&SpaceId>,
) -> Result<(SpaceId, Vec<Located<NewTurn>>), String> {
    let Conversation {
        name, mut turns, ..
    } = conversation;
    let Some(space) = space else {
        let space = SpaceId::new(fitted(&name, SpaceId::LIMIT))
            .map_err(|error| format!("the conversation's name {error}"))?;
        return Ok((space, turns));
    };
    let own = fitted(&name, SessionId::LIMIT);
    for Located { value: turn, .. } in &mut turns {
        if turn.session.as_str() != own {
            let session = fitted(&format!("{name}/{}", turn.session), SessionId::LIMIT);
            turn.session =
                SessionId::new(session).map_err(|error| format!("the session's name {error}"))?;
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
            decided,
            left_out,
            dead_letters,
        } = &self.tally;
        let left_out = left_out
            .iter()
            .map(|one| json!({ "message": one.place, "reason": one.value }));
        let dead_letters = dead_letters.iter().map(
            |one| json!({ "turn_id": one.turn, "message": one.message, "reason": one.reason }),
        );
        json!({
            "file": self.file,
            "format": self.format.name(),
            "spaces": self.spaces,
            "stored": stored,
            "accepted": accepted,
            "skipped": skipped,
            "forgotten": forgotten,
            "decided": decided,
            "left_out": left_out.collect::<Vec<_>>(),
            "dead_letters": dead_letters.collect::<Vec<_>>(),
        })
    }

    fn human(&self, palette: Palette) -> String {
        let Tally {
            stored,
            accepted,
            skipped,
            forgotten,
            decided,
            left_out,
            dead_letters,
        } = &self.tally;
        let numbers = [
            (*stored, "turn", "stored"),
            (*accepted, "turn", "accepted"),
            (*skipped, "turn", "there already"),
            (*forgotten, "turn", "forgotten before and not brought back"),
            (*decided, "fact", "as callers had decided"),
            (left_out.len() as u64, "message", "left out"),
        ];
        let parts = numbers.iter().filter(|(number, ..)| *number > 0);
        let parts = parts
            .map(|(number, thing, what)| format!("{} {what}", count(*number, thing)))
            .collect::<Vec<_>>();
        let spaces = match self.spaces.as_slice() {
            [space] => printable(space.as_str()),
            spaces => count(spaces.len() as u64, "space"),
        };
        let heading = palette.strong(&printable(&self.file.display().to_string()));
        let unread = left_out
            .iter()
            .map(|one| format!("  left out {}: {}", one.place, one.value));
        let refused = dead_letters.iter().map(|one| {
            let turn = format!("turn {}", one.turn);
            let message = one.message.as_ref().unwrap_or(&turn);
            format!("  refused {message}: {}", one.reason)
        });
        let problems = unread
            .chain(refused)
            .map(|line| palette.warning(&printable(&line)));
        let first = format!(
            "{heading} ({}) to {spaces}: {}",
            self.format.name(),
            parts.join(", ")
        );
        std::iter::once(first)
            .chain(problems)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

#[cfg(test)]
mod tests;
