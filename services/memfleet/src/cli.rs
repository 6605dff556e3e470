//! The command line: global options, the commands, and what runs each. A client command reads its arguments, calls the
//! public API through a [`Handle`] and prints the answer; it cannot tell whether the node is here or elsewhere.

mod answer;
mod assemble;
mod audit;
mod backup;
mod completions;
mod config;
mod conflicts;
mod correct;
mod dead_letters;
mod demo;
mod documents;
mod entity;
mod episodes;
mod exit;
mod export;
mod facts;
mod filter;
mod forget;
mod graph;
mod handle;
mod history;
mod import;
mod injections;
mod key;
mod migrate;
mod model;
mod narratives;
mod place;
mod policy;
mod profile;
mod rebuild;
mod recall;
mod remember;
mod revert;
mod sessions;
mod spaces;
mod status;
mod subject;
mod tenants;
mod timeline;
mod turns;
mod up;
mod values;
mod vectors;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, Parser, Subcommand};
use memfleet_ports::settings::SettingKind;
use memfleet_runtime::BoxError;
use memfleet_runtime::config::{HumanDuration, Secret};

use crate::bench;
use crate::output::Output;
pub use exit::{Error, Exit};
pub use handle::Handle;
pub use policy::read as read_policy;
pub use recall::QualityFlag;

/// Long-term memory for LLM agents
#[derive(Debug, Parser)]
#[command(name = "memfleet", version, max_term_width = 120)]
pub struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// How command lines write standard output where a path may stand.
const STANDARD_OUTPUT: &str = "-";

/// Options that every command understands.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Node to talk to
    #[arg(
        long,
        global = true,
        env = "MEMFLEET_SERVER",
        value_name = "URL",
        default_value = "http://127.0.0.1:9460",
        hide_env_values = true
    )]
    pub server: String,
    /// API key, where the node asks for one
    #[arg(
        long,
        global = true,
        env = "MEMFLEET_API_KEY",
        value_name = "KEY",
        hide_env_values = true
    )]
    api_key: Option<Secret>,
    /// Authority that signed the certificate of an https:// node, in PEM; by default those of the operating system
    #[arg(
        long,
        global = true,
        env = "MEMFLEET_CA",
        value_name = "FILE",
        hide_env_values = true
    )]
    ca: Option<PathBuf>,
    /// Configuration file of the node; by default memfleet.toml here or in ~/.config/memfleet
    #[arg(
        long,
        global = true,
        env = "MEMFLEET_CONFIG",
        value_name = "FILE",
        hide_env_values = true
    )]
    config: Option<PathBuf>,
    /// Print JSON: one document, or one a line for lists
    // A path, always `-`, because `bench` shares the option and takes a file there.
    #[arg(long, global = true, num_args = 0, default_missing_value = STANDARD_OUTPUT)]
    json: Option<PathBuf>,
    /// What a call may take, for example `10s`; by default 30 s, and a day for streams, imports and forgetting
    #[arg(long, global = true, value_name = "DURATION", value_parser = values::timeout)]
    timeout: Option<HumanDuration>,
}

impl Global {
    /// The same for another node, with the same key if there is no other.
    pub fn elsewhere(&self, server: String, api_key: Option<Secret>) -> Self {
        Self {
            server,
            api_key: api_key.or_else(|| self.api_key.clone()),
            ..self.clone()
        }
    }

    fn prints_json(&self) -> bool {
        self.json
            .as_deref()
            .is_some_and(|path| path == STANDARD_OUTPUT)
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    Up(up::UpArgs),
    Run(up::RunArgs),
    Demo(demo::DemoArgs),
    #[command(flatten)]
    Remote(Box<Remote>),
    Key(Box<key::KeyArgs>),
    #[command(flatten)]
    Local(Local),
    Bench(bench::BenchArgs),
}

/// Commands that need no node.
#[derive(Debug, Subcommand)]
enum Local {
    Backup(backup::BackupArgs),
    Migrate(migrate::MigrateArgs),
    Vectors(vectors::VectorsArgs),
    Model(model::ModelArgs),
    Config(config::ConfigArgs),
    Completions(completions::CompletionsArgs),
}

/// Commands that talk to a node.
#[derive(Debug, Subcommand)]
enum Remote {
    Import(import::ImportArgs),
    Export(export::ExportArgs),
    Remember(remember::RememberArgs),
    Recall(recall::RecallArgs),
    Answer(answer::AnswerArgs),
    Assemble(assemble::AssembleArgs),
    Spaces(spaces::SpacesArgs),
    Sessions(sessions::SessionsArgs),
    Turns(turns::TurnsArgs),
    Turn(turns::TurnArgs),
    Facts(facts::FactsArgs),
    Episodes(episodes::EpisodesArgs),
    Narratives(narratives::NarrativesArgs),
    Profile(profile::ProfileArgs),
    Timeline(timeline::TimelineArgs),
    Graph(graph::GraphArgs),
    Entity(entity::EntityArgs),
    Conflicts(conflicts::ConflictsArgs),
    History(history::HistoryArgs),
    Correct(Box<correct::CorrectArgs>),
    Revert(revert::RevertArgs),
    Rebuild(rebuild::RebuildArgs),
    Forget(forget::ForgetArgs),
    Watch(watch::WatchArgs),
    DeadLetters(dead_letters::DeadLettersArgs),
    Tenants(tenants::TenantsArgs),
    Audit(audit::AuditArgs),
    Injections(injections::InjectionsArgs),
    Policy(policy::PolicyArgs),
    /// How a block of memory is written: list, show, set or remove the templates of the tenant
    Template(documents::DocumentArgs),
    /// Labelled examples of gate 2: list, show, set or remove those of the tenant, by the language of spaces
    Exemplars(documents::DocumentArgs),
    /// Show what a node is doing and whether its parts work
    Status,
}

/// Reads the command line, runs the command, and says how it went.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return unread(&shortened(error)),
    };
    let json = cli.global.prints_json();
    let mut output = Output::stdout(json);
    let ended = run(cli, &mut output);
    let flushed = output.flush().map_err(Error::from);
    ended
        .and_then(|code| flushed.map(|()| code))
        .unwrap_or_else(|error| {
            error.report(json);
            error.exit().into()
        })
}

/// A command line that cannot be read, or that asks for help or the version.
fn unread(error: &clap::Error) -> ExitCode {
    let mut arguments = std::env::args_os().take_while(|argument| argument != "--");
    if !error.use_stderr() || !arguments.any(|argument| argument == "--json") {
        error.exit();
    }
    let error = usage(error);
    error.report(true);
    error.exit().into()
}

/// Longest value of an option that an error repeats, in characters.
const ECHOED: usize = 64;

/// The error without the end of a long value: its beginning says which one it is.
fn shortened(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) else {
        return error;
    };
    if let Some((end, _)) = value.char_indices().nth(ECHOED) {
        let cut = format!("{}…", &value[..end]);
        error.insert(ContextKind::InvalidValue, ContextValue::String(cut));
    }
    error
}

/// Error of a command line, on one line.
fn usage(error: &clap::Error) -> Error {
    let text = error.to_string();
    let problem = text.split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = problem.split_whitespace().collect();
    Error::Usage(words.join(" ").trim_start_matches("error: ").to_owned())
}

fn run(Cli { global, command }: Cli, output: &mut Output) -> Result<ExitCode, Error> {
    Ok(match command {
        Command::Up(args) => up::up(&args, &config::load(&global, &args)?.config, output)?,
        Command::Run(args) => up::run(&args, &config::load(&global, &args)?.config, output)?,
        Command::Demo(args) => {
            let config = config::load(&global, &())?.config;
            in_runtime(demo::run(args, &config, output))?.into()
        }
        Command::Remote(command) => in_runtime(remote(*command, &global, output))?.into(),
        Command::Key(args) => key(args.command, &global, output)?.into(),
        Command::Local(command) => local(command, &global, output)?.into(),
        Command::Bench(args) => {
            let models = || model::fetch_main(&config::load(&global, &())?.config);
            in_runtime(bench::run(args, models, &global, output))?.into()
        }
    })
}

fn local(command: Local, global: &Global, output: &mut Output) -> Result<Exit, Error> {
    match command {
        Local::Backup(args) => {
            let store = config::load_store(global)?;
            in_runtime(backup::run(args, &store, output))
        }
        Local::Vectors(args) => {
            let config = config::load(global, &())?.config;
            in_runtime(vectors::run(args, &config, output))
        }
        Local::Migrate(_) => {
            let store = config::load_store(global)?;
            in_runtime(migrate::run(&store, output))
        }
        Local::Model(args) => {
            let args = match args.into_switch() {
                Ok(args) => {
                    return in_runtime(async {
                        let handle = Handle::connect(global).await?;
                        let done = model::run_switch(args, &handle, output).await;
                        warn(&handle);
                        done
                    });
                }
                Err(args) => args,
            };
            let configured = config::load(global, &())?.config;
            model::run(args, &configured, output)
        }
        Local::Config(args) => config::run(&args, global, output),
        Local::Completions(args) => completions::run(&args, output),
    }
}

/// All but one of its commands need a node.
fn key(command: key::KeyCommand, global: &Global, output: &mut Output) -> Result<Exit, Error> {
    match command {
        key::KeyCommand::Entry { tenant } => key::entry(tenant.name().clone(), output),
        command => in_runtime(async {
            let handle = Handle::connect(global).await?;
            let done = key::run(command, &handle, output).await;
            warn(&handle);
            done
        }),
    }
}

/// Prints what the node let the client know beside its answers.
fn warn(handle: &Handle) {
    if let Some(warning) = handle.warning() {
        eprintln!("{warning}");
    }
}

async fn remote(command: Remote, global: &Global, output: &mut Output) -> Result<Exit, Error> {
    let handle = Handle::connect(global).await?;
    let done = call(command, &handle, output).await;
    warn(&handle);
    done
}

async fn call(command: Remote, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    match command {
        Remote::Import(args) => import::run(args, handle, output).await,
        Remote::Export(args) => export::run(args, handle, output).await,
        Remote::Remember(args) => remember::run(args, handle, output).await,
        Remote::Recall(args) => recall::run(args, handle, output).await,
        Remote::Answer(args) => answer::run(args, handle, output).await,
        Remote::Assemble(args) => assemble::run(args, handle, output).await,
        Remote::Spaces(args) => spaces::run(args, handle, output).await,
        Remote::Sessions(args) => sessions::run(args, handle, output).await,
        Remote::Turns(args) => turns::list(args, handle, output).await,
        Remote::Turn(args) => turns::versions(args, handle, output).await,
        Remote::Facts(args) => facts::run(args, handle, output).await,
        Remote::Episodes(args) => episodes::run(args, handle, output).await,
        Remote::Narratives(args) => narratives::run(args, handle, output).await,
        Remote::Profile(args) => profile::run(args, handle, output).await,
        Remote::Timeline(args) => timeline::run(args, handle, output).await,
        Remote::Graph(args) => graph::run(args, handle, output).await,
        Remote::Entity(args) => entity::run(args, handle, output).await,
        Remote::Conflicts(args) => conflicts::run(args, handle, output).await,
        Remote::History(args) => history::run(args, handle, output).await,
        Remote::Correct(args) => correct::run(*args, handle, output).await,
        Remote::Revert(args) => revert::run(args, handle, output).await,
        Remote::Rebuild(args) => rebuild::run(args, handle, output).await,
        Remote::Forget(args) => forget::run(args, handle, output).await,
        Remote::Watch(args) => watch::run(args, handle, output).await,
        Remote::DeadLetters(args) => dead_letters::run(args, handle, output).await,
        Remote::Tenants(args) => tenants::run(args, handle, output).await,
        Remote::Audit(args) => audit::run(args, handle, output).await,
        Remote::Injections(args) => injections::run(args, handle, output).await,
        Remote::Policy(args) => policy::run(args, handle, output).await,
        Remote::Template(args) => documents::run(args, SettingKind::Template, handle, output).await,
        Remote::Exemplars(args) => {
            documents::run(args, SettingKind::Exemplars, handle, output).await
        }
        Remote::Status => status::run(handle, output).await,
    }
}

fn in_runtime(work: impl Future<Output = Result<Exit, Error>>) -> Result<Exit, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    runtime.map_err(BoxError::from)?.block_on(work)
}

#[cfg(test)]
mod tests;
