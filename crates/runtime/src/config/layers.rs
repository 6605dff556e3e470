//! What each layer sets: a file, the environment and flags, all flattened to "this key has this value, written there".

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Prefix of the environment variables that set keys; `__` separates sections.
pub(super) const PREFIX: &str = "MEMFLEET_";

/// Where a value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The defaults in code.
    Default,
    /// A configuration file.
    File {
        /// The file.
        path: PathBuf,
        /// Line in it, from 1; 0 for the file as a whole.
        line: usize,
    },
    /// An environment variable, by name.
    Environment(String),
    /// The command line.
    Flag,
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::File { path, line: 0 } => write!(formatter, "{}", path.display()),
            Self::File { path, line } => write!(formatter, "{}:{line}", path.display()),
            Self::Environment(variable) => write!(formatter, "environment variable {variable}"),
            Self::Flag => formatter.write_str("command line"),
        }
    }
}

/// One key set by one layer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Assignment {
    /// Dotted path.
    pub key: String,
    /// Readings of what was written, the likeliest first: a variable may be a number or a text of digits.
    pub readings: Vec<Value>,
    /// Where it was written.
    pub source: Source,
}

/// The dotted path of `name` inside `section`.
pub(super) fn join(section: &str, name: &str) -> String {
    if section.is_empty() {
        name.to_owned()
    } else {
        format!("{section}.{name}")
    }
}

/// The keys that a TOML document sets. `defaults` tells sections from values.
pub(super) fn from_toml(
    path: &Path,
    text: &str,
    defaults: &Value,
) -> Result<Vec<Assignment>, Box<toml::de::Error>> {
    let document = DeTable::parse(text)?;
    let mut found = Vec::new();
    let file = File { path, text };
    file.collect("", document.get_ref(), Some(defaults), &mut found)?;
    Ok(found)
}

struct File<'a> {
    path: &'a Path,
    text: &'a str,
}

impl File<'_> {
    fn collect(
        &self,
        section: &str,
        table: &DeTable<'_>,
        known: Option<&Value>,
        found: &mut Vec<Assignment>,
    ) -> Result<(), Box<toml::de::Error>> {
        for (name, value) in table {
            let key = join(section, name.get_ref());
            let known = known.and_then(|known| known.get(name.get_ref().as_ref()));
            match value.get_ref() {
                DeValue::Table(inner) if is_section(known) => {
                    self.collect(&key, inner, known, found)?;
                }
                _ => found.push(Assignment {
                    key,
                    readings: vec![read(value)?],
                    source: Source::File {
                        path: self.path.to_owned(),
                        line: line_at(self.text, name.span().start),
                    },
                }),
            }
        }
        Ok(())
    }
}

fn read(value: &Spanned<DeValue<'_>>) -> Result<Value, Box<toml::de::Error>> {
    Value::deserialize(value.clone().into_deserializer()).map_err(Box::new)
}

/// The line, from 1, that holds the byte at `offset`.
pub(super) fn line_at(text: &str, offset: usize) -> usize {
    text.bytes()
        .take(offset)
        .filter(|byte| *byte == b'\n')
        .count()
        + 1
}

/// The keys that environment variables set, in order of their names. `reserved` variables belong to somebody else.
pub(super) fn from_environment(
    variables: impl IntoIterator<Item = (String, String)>,
    reserved: &[String],
) -> Vec<Assignment> {
    let sorted: BTreeMap<String, String> = variables.into_iter().collect();
    let ours = sorted.into_iter().filter(|(variable, text)| {
        !reserved.contains(variable) && !is_service_link(variable, text)
    });
    ours.filter_map(|(variable, text)| {
        let key = variable
            .strip_prefix(PREFIX)?
            .to_ascii_lowercase()
            .replace("__", ".");
        Some(Assignment {
            key,
            readings: readings(&text),
            source: Source::Environment(variable),
        })
    })
    .collect()
}

/// Whether Kubernetes sets such a variable in every pod beside a service whose name begins with `memfleet`:
/// `…_SERVICE_HOST=10.0.0.1`, `…_SERVICE_PORT=9460`, `…_PORT=tcp://10.0.0.1:9460`, `…_PORT_9460_TCP=…`.
fn is_service_link(variable: &str, value: &str) -> bool {
    // A key of ours has a section, and so `__`.
    let is_key = variable.contains("__");
    let parts = ["_SERVICE_HOST", "_SERVICE_PORT", "_PORT_"];
    let is_named_so = parts.into_iter().any(|part| variable.contains(part));
    !is_key && (is_named_so || variable.ends_with("_PORT") && value.contains("://"))
}

fn readings(text: &str) -> Vec<Value> {
    let typed = DeValue::parse(text)
        .ok()
        .filter(|value| !value.get_ref().is_str())
        .and_then(|value| read(&value).ok());
    typed
        .into_iter()
        .chain([Value::String(text.to_owned())])
        .collect()
}

/// The keys that flags set: whatever is not null in the serialised flags.
pub(super) fn from_flags(flags: &Value, defaults: &Value) -> Vec<Assignment> {
    let mut found = Vec::new();
    collect_flags("", flags, Some(defaults), &mut found);
    found
}

fn collect_flags(section: &str, flags: &Value, known: Option<&Value>, found: &mut Vec<Assignment>) {
    match flags {
        Value::Null => {}
        Value::Object(inner) if is_section(known) => {
            for (name, value) in inner {
                collect_flags(
                    &join(section, name),
                    value,
                    known.and_then(|known| known.get(name)),
                    found,
                );
            }
        }
        value => found.push(Assignment {
            key: section.to_owned(),
            readings: vec![value.clone()],
            source: Source::Flag,
        }),
    }
}

/// Whether the defaults have named keys here. An empty table holds names that the user chooses, so it is one value.
fn is_section(known: Option<&Value>) -> bool {
    known
        .and_then(Value::as_object)
        .is_some_and(|section| !section.is_empty())
}
