//! `memfleet model`: the models of this machine.

mod fetch;
mod switch;
mod verifying;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use memfleet_models::{
    DEFAULT_MODEL, LanguageCoverage, ModelDirectory, coverage, default_root, known, known_models,
    list,
};
use memfleet_runtime::BoxError;
use serde_json::{Value, json};

use super::exit::{Error, Exit};
use crate::config::Config;
use crate::models::ConfiguredModels;
use crate::output::{Align, Output, Palette, table};

pub use fetch::{fetch, fetch_configured, fetch_main, unusable_model};
pub use switch::run as run_switch;

/// Fetch, list, describe or check models
#[derive(Debug, Args)]
pub struct ModelArgs {
    #[command(subcommand)]
    command: ModelCommand,
    /// Folder that holds models; by default the one of the configuration, else `memfleet/models` in the user's cache
    #[arg(long, value_name = "FOLDER")]
    directory: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum ModelCommand {
    /// Fetch a model and build its int8 form; what is there already is left alone
    Pull {
        /// Name of the model; by default those that the configuration names
        name: Option<String>,
        /// Folder with the source files, instead of the network
        #[arg(long, value_name = "FOLDER", requires = "name")]
        from: Option<PathBuf>,
    },
    /// List the models that are known and those that are here
    List,
    /// Describe a model, with the languages whose words it knows
    Show {
        /// Name of the model
        #[arg(default_value = DEFAULT_MODEL)]
        name: String,
    },
    /// Change the embedding model of a node or fleet that runs, without stopping it; takes an
    /// operator's key
    Switch(switch::SwitchArgs),
    /// Check a model's files, its vectors against full precision, and the reader of turns on it
    Verify {
        /// Name of the model; all that are here when it is left out
        name: Option<String>,
    },
}

impl ModelArgs {
    /// The arguments of `switch`, which talks to a node; else all arguments again.
    pub fn into_switch(self) -> Result<switch::SwitchArgs, Self> {
        match self.command {
            ModelCommand::Switch(args) => Ok(args),
            command => Err(Self { command, ..self }),
        }
    }
}

/// Runs the command.
pub fn run(args: ModelArgs, configured: &Config, output: &mut Output) -> Result<Exit, Error> {
    let root = args
        .directory
        .or_else(|| configured.model.directory.clone())
        .map_or_else(default_root, Ok)
        .map_err(BoxError::from)?;
    match args.command {
        ModelCommand::Pull { name, from } => {
            let models = match &name {
                Some(name) => vec![fetch(name, root, from)?],
                None => {
                    let mut config = configured.clone();
                    config.model.directory = Some(root);
                    let ConfiguredModels { main, multilingual } = fetch_configured(&config)?;
                    [Some(main), multilingual].into_iter().flatten().collect()
                }
            };
            for model in models {
                let name = &model.manifest().name;
                output.answer(
                    || here_to_json(&model),
                    |palette| format!("{} is in {}", palette.strong(name), model.path().display()),
                )?;
            }
        }
        ModelCommand::Switch(_) => unreachable!("it talks to a node"),
        ModelCommand::List => print_list(&root, output)?,
        ModelCommand::Show { name } => show(&root, &name, output)?,
        ModelCommand::Verify { name } => verifying::run(&root, name, output)?,
    }
    Ok(Exit::Done)
}

fn print_list(root: &Path, output: &mut Output) -> Result<(), Error> {
    let here = list(root).map_err(BoxError::from)?;
    let names = known_models().iter().map(|model| model.name.clone());
    let names = names
        .chain(here.iter().map(|model| model.manifest().name.clone()))
        .collect::<BTreeSet<_>>();
    let rows = names
        .iter()
        .map(|name| Row::new(name, &here))
        .collect::<Vec<_>>();
    Ok(output.list(&rows, Row::to_json, |palette| rows_table(&rows, palette))?)
}

fn show(root: &Path, name: &str, output: &mut Output) -> Result<(), Error> {
    let here = list(root).map_err(BoxError::from)?;
    let model = here.into_iter().find(|it| it.manifest().name == name);
    let model =
        model.ok_or_else(|| missing(&format!("model {name} is not in {}", root.display())))?;
    let encoder = model.load(NonZeroUsize::MIN).map_err(BoxError::from)?;
    let languages = coverage(&encoder).map_err(BoxError::from)?;
    Ok(output.answer(
        || shown_to_json(&model, &languages),
        |palette| shown(&model, &languages, palette),
    )?)
}

fn shown_to_json(model: &ModelDirectory, languages: &[LanguageCoverage]) -> Value {
    let manifest = model.manifest();
    let language = |it: &LanguageCoverage| {
        json!({
            "language": it.language,
            "covered": it.is_covered(),
            "unknown_words_percent": 100.0 * it.unknown,
            "pieces_per_word": it.pieces,
        })
    };
    json!({
        "name": manifest.name,
        "revision": manifest.revision,
        "recipe": manifest.recipe,
        "dimensions": manifest.dimensions,
        "max_tokens": manifest.max_tokens,
        "query_prefix": manifest.query_prefix,
        "passage_prefix": manifest.passage_prefix,
        "licence": manifest.licence,
        "path": model.path(),
        "languages": languages.iter().map(language).collect::<Vec<_>>(),
    })
}

fn shown(model: &ModelDirectory, languages: &[LanguageCoverage], palette: Palette) -> String {
    let manifest = model.manifest();
    let names = |covered: bool| {
        let names = languages.iter().filter(|it| it.is_covered() == covered);
        let names: Vec<&str> = names.map(|it| it.language.as_str()).collect();
        format!(
            "{} of {}: {}",
            names.len(),
            languages.len(),
            names.join(" ")
        )
    };
    [
        palette.strong(&manifest.name),
        format!("revision     {}", manifest.revision),
        format!("recipe       {}", manifest.recipe),
        format!("licence      {}", manifest.licence),
        format!("dimensions   {}", manifest.dimensions),
        format!("reads        {} word pieces of a text", manifest.max_tokens),
        format!("covered      {}", names(true)),
        format!("not covered  {}", names(false)),
        "A covered language has at most 2 % unknown words and 2.5 word pieces a word; in others,"
            .to_owned(),
        "words that the model does not know are found by their letters alone.".to_owned(),
    ]
    .join("\n")
}

fn missing(what: &str) -> Error {
    use memfleet_domain::{Fault, FaultKind};
    Fault::new(
        FaultKind::NotFound,
        "MODEL_NOT_FOUND",
        format!("{what}; fetch it with `memfleet model pull`"),
    )
    .into()
}

/// A model by name, and what is here of it.
struct Row<'a> {
    name: &'a str,
    here: Option<&'a ModelDirectory>,
}

impl<'a> Row<'a> {
    fn new(name: &'a str, here: &'a [ModelDirectory]) -> Self {
        Self {
            name,
            here: here.iter().find(|model| model.manifest().name == name),
        }
    }

    fn dimensions(&self) -> usize {
        let here = self.here.map(|model| model.manifest().dimensions);
        here.or_else(|| known(self.name).map(|model| model.dimensions))
            .unwrap_or_default()
    }

    fn licence(&self) -> &str {
        let here = self.here.map(|model| model.manifest().licence.as_str());
        here.or_else(|| known(self.name).map(|model| model.licence.as_str()))
            .unwrap_or_default()
    }

    fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "dimensions": self.dimensions(),
            "licence": self.licence(),
            "path": self.here.map(ModelDirectory::path),
        })
    }
}

fn rows_table(rows: &[Row<'_>], palette: Palette) -> String {
    let columns = [
        ("MODEL", Align::Left),
        ("DIMENSIONS", Align::Right),
        ("LICENCE", Align::Left),
        ("WHERE", Align::Left),
    ];
    let rows = rows.iter().map(|row| {
        let place = row.here.map_or_else(
            || "not here".to_owned(),
            |model| model.path().display().to_string(),
        );
        [
            row.name.to_owned(),
            row.dimensions().to_string(),
            row.licence().to_owned(),
            place,
        ]
    });
    table(palette, columns, rows)
}

fn here_to_json(model: &ModelDirectory) -> Value {
    let manifest = model.manifest();
    json!({ "name": manifest.name, "revision": manifest.revision, "recipe": manifest.recipe, "path": model.path() })
}
