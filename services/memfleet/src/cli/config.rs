//! `memfleet config`: what the configuration says, and what is wrong with it; and the one way it is loaded.

use clap::{Args, Subcommand};
use memfleet_runtime::config::{Loaded, Loader, to_toml};
use serde::Serialize;
use serde_json::{Value, json};

use super::Global;
use super::exit::{Error, Exit};
use crate::config::Config;
use crate::output::Output;

/// Variables that begin like a configuration key and mean something else; the last ones are those of the project's own tests.
const RESERVED: [&str; 15] = [
    "MEMFLEET_SERVER",
    "MEMFLEET_API_KEY",
    "MEMFLEET_CA",
    "MEMFLEET_CONFIG",
    "MEMFLEET_MODELS",
    "MEMFLEET_TEST_POSTGRES_URL",
    "MEMFLEET_TEST_NATS_URL",
    "MEMFLEET_TEST_POSTGRES_BIN",
    "MEMFLEET_TEST_NATS_SERVER",
    "MEMFLEET_TEST_NEO4J_URL",
    "MEMFLEET_TEST_NEO4J_LIB",
    "MEMFLEET_POSTGRES_BIN",
    "MEMFLEET_NATS_SERVER",
    "MEMFLEET_NEO4J_LIB",
    "MEMFLEET_SERVERS_CACHE",
];

/// Check or show the configuration of a node
#[derive(Debug, Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Say everything that is wrong with it; exit code 2 if something is
    Check,
    /// Print the values that are in force, as TOML
    Show,
}

/// Loads the configuration of a node: defaults, file, environment, `flags`.
pub fn load(global: &Global, flags: &impl Serialize) -> Result<Loaded<Config>, Error> {
    let loader = Loader::from_process()
        .file(global.config.clone())
        .flags(flags);
    let loader = RESERVED
        .iter()
        .fold(loader, |loader, variable| loader.reserve(variable));
    Ok(loader.load()?)
}

/// Runs the command.
pub fn run(args: &ConfigArgs, global: &Global, output: &mut Output) -> Result<Exit, Error> {
    match args.command {
        ConfigCommand::Check => check(load(global, &()), output),
        ConfigCommand::Show => {
            let config = load(global, &())?.config;
            output.answer(|| json!(config), |_| to_toml(&config))?;
            Ok(Exit::Done)
        }
    }
}

/// What is wrong is the answer here, not an error.
fn check(loaded: Result<Loaded<Config>, Error>, output: &mut Output) -> Result<Exit, Error> {
    match loaded {
        Ok(loaded) => {
            let file = loaded.file.as_deref();
            let source = file.map_or_else(
                || "no file, defaults and environment".to_owned(),
                |file| file.display().to_string(),
            );
            output.answer(
                || json!({ "file": file, "problems": [] }),
                |palette| format!("{}  ({source})", palette.good("the configuration is sound")),
            )?;
            Ok(Exit::Done)
        }
        Err(Error::Configuration(error)) if output.is_json() => {
            output.json(&json!({ "file": null, "problems": problems(&error) }))?;
            Ok(Exit::Usage)
        }
        Err(error) => Err(error),
    }
}

fn problems(error: &memfleet_runtime::config::Error) -> Vec<Value> {
    let findings = error.findings.iter();
    findings
        .map(|finding| {
            json!({
                "key": finding.key,
                "source": finding.source.to_string(),
                "message": finding.message,
                "fix": finding.fix,
            })
        })
        .collect()
}
