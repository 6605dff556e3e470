//! `memfleet template` and `memfleet exemplars`: documents of a tenant that say how memory enters prompts, each as TOML and in versions.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use memfleet_assembly::Template;
use memfleet_domain::ids::SettingName;
use memfleet_domain::{Fault, Timestamp};
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

/// List them in their present versions, shipped templates too
#[derive(Debug, Args)]
struct ListArgs {
    /// All versions of this one instead, the newest first
    #[arg(long, value_parser = values::setting, value_name = "NAME")]
    history_of: Option<SettingName>,
}

/// Print one as it was set, or a shipped template, alone on standard output
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
    let documents = match args.history_of {
        Some(name) => documents(Listing::History(key(kind, name)), handle).await?,
        None => with_shipped(kind, documents(Listing::Present(Some(kind)), handle).await?),
    };
    output.list(&documents, to_json, |palette| human(&documents, palette))?;
    Ok(Exit::Done)
}

async fn show(
    args: ShowArgs,
    kind: SettingKind,
    handle: &Handle,
    output: &mut Output,
) -> Result<Exit, Error> {
    let document = found(&args, kind, handle).await?;
    if document.is_shipped() {
        eprintln!(
            "`{}` is shipped; the tenant has none of that name",
            document.name
        );
    }
    match output.is_json() {
        true => output.json(&to_json(&document))?,
        // As it is, for a file; a terminal is nothing to protect from what an administrator wrote.
        false => output.text(document.body.unwrap_or_default().trim_end_matches('\n'))?,
    }
    Ok(Exit::Done)
}

/// The version that is asked for; by default what is in force under the name: the tenant's latest, else what is shipped.
async fn found(args: &ShowArgs, kind: SettingKind, handle: &Handle) -> Result<Document, Error> {
    let name = &args.which.name;
    let versions = documents(Listing::History(key(kind, name.clone())), handle).await?;
    let set = match args.version {
        Some(version) => versions.into_iter().find(|it| it.version == version),
        None => versions.into_iter().next(),
    };
    if let Some(set) = set.filter(|it| it.body.is_some()) {
        return Ok(set);
    }
    let shipped = match args.version {
        Some(_) => None,
        None => shipped(kind)
            .into_iter()
            .find(|it| it.name == name.as_str()),
    };
    let version = args
        .version
        .map_or(String::new(), |it| format!(" in version {it}"));
    shipped.ok_or_else(|| Fault::not_found(format!("{kind} `{name}`{version}")).into())
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

/// A document of the tenant, or one that comes with memfleet.
struct Document {
    name: String,
    version: u32,
    /// Who set it and when; absent: it is shipped.
    set: Option<(String, Timestamp)>,
    body: Option<String>,
}

impl Document {
    fn is_shipped(&self) -> bool {
        self.set.is_none()
    }
}

impl From<Setting> for Document {
    fn from(setting: Setting) -> Self {
        Self {
            name: setting.key.name.to_string(),
            version: setting.version,
            set: Some((setting.by, setting.at)),
            body: setting.body,
        }
    }
}

/// What is shipped as documents of a kind.
fn shipped(kind: SettingKind) -> Vec<Document> {
    let document = |(template, source): (&Template, &str)| Document {
        name: template.id.clone(),
        version: template.version,
        set: None,
        body: Some(source.to_owned()),
    };
    match kind {
        SettingKind::Template => Template::shipped_sources().map(document).into(),
        _ => Vec::new(),
    }
}

/// The documents, and those that are shipped and that none of them takes the place of.
fn with_shipped(kind: SettingKind, mut documents: Vec<Document>) -> Vec<Document> {
    let mut shipped = shipped(kind);
    shipped.retain(|shipped| documents.iter().all(|it| it.name != shipped.name));
    documents.append(&mut shipped);
    documents
}

async fn documents(listing: Listing, handle: &Handle) -> Result<Vec<Document>, Error> {
    let read = async |page| {
        let call = handle.call();
        handle
            .policies
            .documents(&call, listing.clone(), page)
            .await
    };
    let settings = every(read).await?;
    Ok(settings.into_iter().map(Document::from).collect())
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

fn to_json(document: &Document) -> Value {
    let set = document.set.as_ref();
    json!({
        "name": document.name,
        "version": document.version,
        "set_by": set.map(|(by, _)| by),
        "set_at": set.map(|(_, at)| at),
        "body": document.body,
        "shipped": document.is_shipped(),
    })
}

fn human(documents: &[Document], palette: Palette) -> String {
    let columns = [
        ("NAME", Align::Left),
        ("VERSION", Align::Right),
        ("SET AT", Align::Left),
        ("SET BY", Align::Left),
        ("SIZE", Align::Right),
    ];
    let rows = documents.iter().map(|document| {
        let size = document.body.as_ref().map(|body| body.len() as u64);
        let (at, by) = match &document.set {
            Some((by, at)) => (time(*at), printable(by)),
            None => ("shipped".to_owned(), String::new()),
        };
        [
            printable(&document.name),
            document.version.to_string(),
            at,
            by,
            size.map_or_else(|| "removed".to_owned(), |size| count(size, "byte")),
        ]
    });
    table(palette, columns, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_templates_are_listed_unless_the_tenant_has_one_of_the_name() {
        let own = Document {
            name: "cited".to_owned(),
            version: 3,
            set: Some(("key".to_owned(), Timestamp::UNIX_EPOCH)),
            body: Some("…".to_owned()),
        };
        let listed = with_shipped(SettingKind::Template, vec![own]);
        let told: Vec<_> = listed
            .iter()
            .map(|it| (it.name.as_str(), it.is_shipped()))
            .collect();
        assert_eq!(told, [("cited", false), ("turns", true)]);
        assert_eq!(to_json(&listed[1])["set_by"], Value::Null);
        assert!(with_shipped(SettingKind::Exemplars, Vec::new()).is_empty());
    }
}
