//! How memory enters prompts where no tenant says otherwise, and what counts their tokens.

use std::path::PathBuf;
use std::str::FromStr;

use memfleet_assembly::{Tokenizer, Tokenizers};
use memfleet_domain::policy::{Policy, Settings};
use memfleet_gateway::node_policy;
use memfleet_runtime::BoxError;
use memfleet_runtime::config::{Problem, Validate};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

/// Context assembly (AMP).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Assembly {
    /// Tokenizers besides the built-in ones, as `name: path` of a `tokenizer.json` of Hugging Face. The gateway reads them. Default none.
    pub tokenizers: Vec<String>,
    /// The policy below those of tenants. Default: it says nothing.
    #[serde(serialize_with = "with_every_key")]
    pub policy: Policy,
}

/// One of [`Assembly::tokenizers`].
#[derive(Debug, Clone, PartialEq, Eq)]
struct File {
    name: String,
    path: PathBuf,
}

impl FromStr for File {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "is not `name: path`, such as `llama-3: /models/llama-3/tokenizer.json`";
        let (name, path) = text.split_once(':').ok_or(form)?;
        let (name, path) = (name.trim(), path.trim());
        if name.is_empty() || path.is_empty() {
            return Err(form.to_owned());
        }
        if Tokenizer::NAMES.contains(&name) {
            return Err(format!(
                "names the built-in `{name}`: give the file another name"
            ));
        }
        Ok(Self {
            name: name.to_owned(),
            path: path.into(),
        })
    }
}

impl Assembly {
    /// The tokenizers, each file read once: one that cannot be used ends the start, not a call.
    pub fn tokenizers(&self) -> Result<Tokenizers, BoxError> {
        let files = self.files();
        let tokenizers = Tokenizers::new(files.map(|(_, file)| (file.name, file.path)))?;
        for (at, file) in self.files() {
            let unusable = |error| format!("assembly.tokenizers[{at}]: {error}");
            tokenizers.get(&file.name).map_err(unusable)?;
        }
        Ok(tokenizers)
    }

    /// What is wrong with the files of the tokenizers. It is no problem of the configuration: the gateway alone reads them, and other
    /// roles start without.
    pub fn problems_of_files(&self) -> Vec<Problem> {
        let files = self.files().map(|(_, file)| (file.name, file.path));
        let Ok(tokenizers) = Tokenizers::new(files) else {
            return Vec::new();
        };
        let unusable = |(at, file): (usize, File)| {
            let error = tokenizers.get(&file.name).err()?;
            Some(Problem::new(format!("tokenizers[{at}]"), error.to_string()))
        };
        self.files().filter_map(unusable).collect()
    }

    fn files(&self) -> impl Iterator<Item = (usize, File)> {
        let files = self.tokenizers.iter().enumerate();
        files.filter_map(|(at, text)| Some((at, text.parse().ok()?)))
    }

    fn problems_of_tokenizers(&self) -> Vec<Problem> {
        let mut names = Vec::new();
        let check = |(at, text): (usize, &String)| {
            let problem = match text.parse::<File>() {
                Ok(file) if names.contains(&file.name) => {
                    format!("names `{}` a second time", file.name)
                }
                Ok(file) => {
                    names.push(file.name);
                    return None;
                }
                Err(problem) => problem,
            };
            Some(Problem::new(format!("tokenizers[{at}]"), problem))
        };
        self.tokenizers
            .iter()
            .enumerate()
            .filter_map(check)
            .collect()
    }
}

impl Validate for Assembly {
    fn problems(&self) -> Vec<Problem> {
        let mut problems = self.problems_of_tokenizers();
        let of_policy = node_policy::problems(&self.policy).into_iter();
        problems.extend(
            of_policy.map(|it| Problem::new(format!("policy.{}", it.field), it.description)),
        );
        problems
    }
}

/// A policy with null for what it does not say: every key of the configuration is known, and documented.
fn with_every_key<S: Serializer>(policy: &Policy, serializer: S) -> Result<S::Ok, S::Error> {
    let said = json!(policy);
    let mut all = json!(Policy::from(Settings::default()));
    let sections = all.as_object_mut().into_iter().flatten();
    for (section, values) in sections {
        for (key, value) in values.as_object_mut().into_iter().flatten() {
            *value = said[section].get(key).cloned().unwrap_or(Value::Null);
        }
    }
    all["topics"] = said.get("topics").cloned().unwrap_or(Value::Null);
    all.serialize(serializer)
}
