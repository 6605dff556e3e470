//! `memfleet config`: what the configuration says, and what is wrong with it; and the one way it is loaded.

use clap::{Args, Subcommand};
use memfleet_runtime::config::{Loaded, Loader, Problem, Validate, to_toml};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Global;
use super::exit::{Error, Exit};
use super::model::unusable_model;
use crate::config::{Config, Store};
use crate::output::{Output, exact};

/// Variables that begin like a configuration key and mean something else; the last ones are those of the project's own tests.
const RESERVED: [&str; 18] = [
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
    "MEMFLEET_TEST_PROGRAM",
    "MEMFLEET_POSTGRES_BIN",
    "MEMFLEET_EARLIER_POSTGRES",
    "MEMFLEET_NATS_SERVER",
    "MEMFLEET_GRPCURL",
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
    Ok(loader(global, flags).load()?)
}

fn loader(global: &Global, flags: &impl Serialize) -> Loader {
    let loader = Loader::from_process()
        .file(global.config.clone())
        .flags(flags);
    RESERVED
        .iter()
        .fold(loader, |loader, variable| loader.reserve(variable))
}

/// Configuration of a command that works on the database alone: the rest of it may be missing, or
/// that of a role.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
struct OfStore(Config);

impl Validate for OfStore {
    const REMOVED_KEYS: &[(&str, &str)] = Config::REMOVED_KEYS;

    fn problems(&self) -> Vec<Problem> {
        self.0.store.problems_under("store")
    }
}

/// Loads what the configuration says of the database; all else may be wrong.
pub fn load_store(global: &Global) -> Result<Store, Error> {
    let loaded: Loaded<OfStore> = loader(global, &()).load()?;
    Ok(loaded.config.0.store)
}

/// A configuration with all that it names on this machine, on which a start would end: the folder
/// of the database, the model, and the files of tokenizers.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
struct WithFiles(Config);

impl Validate for WithFiles {
    const REMOVED_KEYS: &[(&str, &str)] = Config::REMOVED_KEYS;

    fn problems(&self) -> Vec<Problem> {
        let config = &self.0;
        let of_files = config.assembly.problems_of_files().into_iter();
        let mut problems = config.problems();
        problems.extend(of_files.map(|problem| problem.under("assembly")));
        let folder = config.store.problem_of_folder();
        problems.extend(folder.map(|problem| problem.under("store")));
        let model = unusable_model(&config.model.name);
        problems.extend(model.map(|message| Problem::new("model.name", message)));
        let multilingual = config.multilingual_model().and_then(unusable_model);
        problems.extend(multilingual.map(|message| Problem::new("model.multilingual", message)));
        problems
    }
}

/// Runs the command.
pub fn run(args: &ConfigArgs, global: &Global, output: &mut Output) -> Result<Exit, Error> {
    match args.command {
        ConfigCommand::Check => check(loader(global, &()).load(), output),
        ConfigCommand::Show => {
            let config = load(global, &())?.config;
            output.answer(|| exact(&config), |_| to_toml(&config))?;
            Ok(Exit::Done)
        }
    }
}

/// What is wrong is the answer here, not an error.
fn check(
    loaded: Result<Loaded<WithFiles>, memfleet_runtime::config::Error>,
    output: &mut Output,
) -> Result<Exit, Error> {
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
        Err(error) if output.is_json() => {
            output.json(&json!({ "file": null, "problems": problems(&error) }))?;
            Ok(Exit::Usage)
        }
        Err(error) => Err(error.into()),
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

#[cfg(test)]
mod tests {
    use memfleet_runtime::config::Source;

    use super::*;

    #[test]
    fn elements_of_lists_and_files_that_are_not_there_are_told_with_their_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memfleet.toml");
        let text = "[assembly]\ntokenizers = [\"a: /nowhere/a.json\", \"b\"]\n\
            [assembly.policy.format]\nredactions = [\"(\"]\n";
        std::fs::write(&path, text).unwrap();
        let loader = Loader::defaults_only().file(Some(path.clone()));
        let findings = loader.load::<WithFiles>().unwrap_err().findings;
        let told: Vec<_> = findings
            .iter()
            .map(|it| (it.key.as_str(), it.source.clone()))
            .collect();
        let at = |line| Source::File {
            path: path.clone(),
            line,
        };
        let expected = [
            ("assembly.tokenizers[1]", at(2)),
            ("assembly.policy.format.redactions[0]", at(4)),
            ("assembly.tokenizers[0]", at(2)),
        ];
        assert_eq!(told, expected);
        let message = &findings[2].message;
        assert!(message.contains("/nowhere/a.json"), "{message}");
        assert!(loader.load::<Config>().unwrap_err().findings.len() == 2);
    }

    #[test]
    fn the_configuration_that_is_shown_reads_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memfleet.toml");
        std::fs::write(&path, to_toml(&Config::default())).unwrap();
        let loader = Loader::defaults_only().file(Some(path));
        let read = loader.load::<Config>().unwrap().config;
        assert_eq!(to_toml(&read), to_toml(&Config::default()));
    }

    #[test]
    fn what_a_start_would_end_on_is_told_before() {
        let mut config = Config::default();
        config.store.url = "sqlite:/nowhere/at-all/memfleet.db".into();
        "all-MiniLM".clone_into(&mut config.model.name);
        config.telemetry.level = "inof".to_owned();
        let problems = WithFiles(config).problems();
        let keys: Vec<_> = problems.iter().map(|it| it.key.as_str()).collect();
        assert_eq!(keys, ["telemetry.level", "store.url", "model.name"]);
        let says = |words: &str| problems.iter().any(|it| it.message.contains(words));
        assert!(says("/nowhere/at-all") && says("all-MiniLM-L6-v2") && says("`inof`"));
        assert_eq!(WithFiles::default().problems(), []);
    }

    #[test]
    fn a_command_on_the_database_alone_asks_for_no_queue() {
        let mut config = OfStore::default();
        config.0.store.url = "postgres://fleet@db/memfleet".into();
        assert_eq!(config.problems(), []);
        assert_eq!(config.0.problems()[0].key, "queue.url");
        config.0.store.max_connections = 0;
        assert_eq!(config.problems()[0].key, "store.max_connections");
    }
}
