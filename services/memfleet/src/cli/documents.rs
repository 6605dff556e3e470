//! `memfleet template` and `memfleet exemplars`: documents of a tenant that say how memory enters prompts, each as TOML and in versions.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use memfleet_domain::Fault;
use memfleet_domain::ids::SettingName;
use memfleet_ports::policies::{Listing, NewDocument};
use memfleet_ports::settings::{Setting, SettingKey, SettingKind};
use serde_json::{Value, json};

use super::exit::{Error, Exit};
use super::handle::every;
use super::policy::{Follows, input, told};
use super::{Handle, STANDARD_OUTPUT, values};
use crate::output::{Align, Output, Palette, count, printable, table, time};

#[derive(Debug, Args)]
pub struct DocumentArgs {
    #[command(subcommand)]
    command: DocumentCommand,
}

#[derive(Debug, Subcommand)]
enum DocumentCommand {
    List(ListArgs),
    #[command(alias = "get")]
    Show(ShowArgs),
    #[command(alias = "put")]
    Set(SetArgs),
    #[command(alias = "delete")]
    Remove(RemoveArgs),
}

/// List them in their present versions
#[derive(Debug, Args)]
struct ListArgs {
    /// All versions of this one instead, the newest first
    #[arg(long, value_parser = values::setting, value_name = "NAME")]
    history_of: Option<SettingName>,
}

/// Print one as it was set, alone on standard output
#[derive(Debug, Args)]
struct ShowArgs {
    #[command(flatten)]
    which: Which,
    /// This version of it; by default the latest
    #[arg(long, value_name = "N")]
    version: Option<u32>,
}

/// Set one, once it is checked; it works within three seconds
#[derive(Debug, Args)]
struct SetArgs {
    #[command(flatten)]
    which: Which,
    /// File with the TOML, `-` for standard input
    #[arg(long, value_name = "FILE", default_value = STANDARD_OUTPUT)]
    file: PathBuf,
    #[command(flatten)]
    follows: Follows,
}

/// Remove one; what is shipped is in force again
#[derive(Debug, Args)]
struct RemoveArgs {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    follows: Follows,
}

#[derive(Debug, Args)]
struct Which {
    /// A template's `id`; of examples the language of spaces, such as `de`, or `default`
    #[arg(value_parser = values::setting)]
    name: SettingName,
}

/// Runs the command for documents of a kind.
pub async fn run(
    args: DocumentArgs,
    kind: SettingKind,
    handle: &Handle,
    output: &mut Output,
) -> Result<Exit, Error> {
    match args.command {
        DocumentCommand::List(args) => list(args, kind, handle, output).await,
        DocumentCommand::Show(args) => show(args, kind, handle, output).await,
        DocumentCommand::Set(args) => set(args, kind, handle, output).await,
        DocumentCommand::Remove(args) => remove(args, kind, handle, output).await,
    }
}

async fn list(
    args: ListArgs,
    kind: SettingKind,
    handle: &Handle,
    output: &mut Output,
) -> Result<Exit, Error> {
    let listing = match args.history_of {
        Some(name) => Listing::History(key(kind, name)),
        None => Listing::Present(Some(kind)),
    };
    let documents = documents(listing, handle).await?;
    output.list(&documents, to_json, |palette| human(&documents, palette))?;
    Ok(Exit::Done)
}

async fn show(
    args: ShowArgs,
    kind: SettingKind,
    handle: &Handle,
    output: &mut Output,
) -> Result<Exit, Error> {
    let name = &args.which.name;
    let versions = documents(Listing::History(key(kind, name.clone())), handle).await?;
    let is_asked_for = |it: &Setting| args.version.is_none_or(|version| it.version == version);
    let found = versions.into_iter().find(is_asked_for);
    let Some((document, body)) = found.and_then(|it| Some((it.clone(), it.body?))) else {
        let version = args
            .version
            .map_or(String::new(), |it| format!(" in version {it}"));
        return Err(Fault::not_found(format!("{kind} `{name}`{version}")).into());
    };
    match output.is_json() {
        true => output.json(&to_json(&document))?,
        // As it is, for a file; a terminal is nothing to protect from what an administrator wrote.
        false => output.text(body.trim_end_matches('\n'))?,
    }
    Ok(Exit::Done)
}

async fn set(
    args: SetArgs,
    kind: SettingKind,
    handle: &Handle,
    output: &mut Output,
) -> Result<Exit, Error> {
    let document = NewDocument {
        kind,
        name: args.which.name,
        body: input(&args.file)?,
        expected: args.follows.expected_version,
    };
    let put = handle.policies.put_document(&handle.call(), document).await;
    told(
        put.map_err(|fault| named_as_options(fault, &args.file))?,
        output,
    )
}

async fn remove(
    args: RemoveArgs,
    kind: SettingKind,
    handle: &Handle,
    output: &mut Output,
) -> Result<Exit, Error> {
    let key = key(kind, args.which.name);
    let expected = args.follows.expected_version;
    let call = handle.call();
    let removed = handle.policies.remove_document(&call, key, expected);
    told(removed.await?, output)
}

async fn documents(listing: Listing, handle: &Handle) -> Result<Vec<Setting>, Error> {
    let read = async |page| {
        let call = handle.call();
        handle
            .policies
            .documents(&call, listing.clone(), page)
            .await
    };
    Ok(every(read).await?)
}

/// What is wrong with a body is said of its file.
fn named_as_options(mut fault: Fault, file: &Path) -> Fault {
    let wrong = fault.fields.iter_mut().filter(|it| it.field == "body");
    for violation in wrong {
        violation.field = format!("--file {}", file.display());
    }
    fault
}

fn key(kind: SettingKind, name: SettingName) -> SettingKey {
    SettingKey {
        kind,
        space: None,
        name,
    }
}

fn to_json(document: &Setting) -> Value {
    json!({
        "name": document.key.name,
        "version": document.version,
        "set_by": document.by,
        "set_at": document.at,
        "body": document.body,
    })
}

fn human(documents: &[Setting], palette: Palette) -> String {
    let columns = [
        ("NAME", Align::Left),
        ("VERSION", Align::Right),
        ("SET AT", Align::Left),
        ("SET BY", Align::Left),
        ("SIZE", Align::Right),
    ];
    let rows = documents.iter().map(|document| {
        let size = document.body.as_ref().map(|body| body.len() as u64);
        [
            printable(document.key.name.as_str()),
            document.version.to_string(),
            time(document.at),
            printable(&document.by),
            size.map_or_else(|| "removed".to_owned(), |size| count(size, "byte")),
        ]
    });
    table(palette, columns, rows)
}
