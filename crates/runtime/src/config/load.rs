//! Merges the layers into one value and collects what is wrong on the way.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{Error, Finding};
use super::layers::{self, Assignment, Source};
use super::view::{literal, tree};
use super::{Problem, Validate, suggest};

/// Name of the file that is looked for when none is named.
const FILE_NAME: &str = "memfleet.toml";

/// Collects the layers, then [`Loader::load`]s them.
#[derive(Debug, Clone)]
pub struct Loader {
    explicit: Option<PathBuf>,
    search: Vec<PathBuf>,
    variables: Vec<(String, String)>,
    reserved: Vec<String>,
    flags: Value,
}

/// A configuration that passed every check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded<T> {
    /// The values.
    pub config: T,
    /// The file that was read, if there was one.
    pub file: Option<PathBuf>,
}

impl Loader {
    /// Reads this process's environment and looks for `memfleet.toml` in the working directory, then in
    /// `$XDG_CONFIG_HOME/memfleet` (by default `~/.config/memfleet`).
    pub fn from_process() -> Self {
        let config_home = env::var_os("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(|| env::home_dir().map(|home| home.join(".config")));
        let search = [
            Some(PathBuf::from(FILE_NAME)),
            config_home.map(|home| home.join("memfleet").join(FILE_NAME)),
        ];
        let variables = env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self {
            search: search.into_iter().flatten().collect(),
            variables: variables.collect(),
            ..Self::defaults_only()
        }
    }

    /// Reads nothing but what is added with the other methods.
    pub fn defaults_only() -> Self {
        Self {
            explicit: None,
            search: Vec::new(),
            variables: Vec::new(),
            reserved: Vec::new(),
            flags: Value::Null,
        }
    }

    /// Reads this file, which must exist, instead of looking for one. `None` changes nothing.
    #[must_use]
    pub fn file(mut self, path: Option<PathBuf>) -> Self {
        self.explicit = path.or(self.explicit);
        self
    }

    /// Replaces the environment, for tests.
    #[must_use]
    pub fn environment(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        self.variables = variables.into_iter().collect();
        self
    }

    /// Leaves `variable` alone although it begins with `MEMFLEET_`, for example the one that names the file.
    #[must_use]
    pub fn reserve(mut self, variable: &str) -> Self {
        self.reserved.push(variable.to_owned());
        self
    }

    /// Sets what the command line says. `flags` has the shape of the configuration; what is not given is `None`.
    #[must_use]
    pub fn flags<F: Serialize>(mut self, flags: &F) -> Self {
        self.flags = tree(flags);
        self
    }

    /// Merges all layers over `T::default()`: later layers win key by key.
    pub fn load<T>(&self) -> Result<Loaded<T>, Error>
    where
        T: Default + Serialize + DeserializeOwned + Validate,
    {
        let mut merge = Merge {
            defaults: tree(&T::default()),
            merged: tree(&T::default()),
            applied: Vec::new(),
            findings: Vec::new(),
        };
        let file = merge.file::<T>(self.chosen());
        let environment = layers::from_environment(self.variables.iter().cloned(), &self.reserved);
        let flags = layers::from_flags(&self.flags, &merge.defaults);
        environment
            .into_iter()
            .chain(flags)
            .for_each(|assignment| merge.apply::<T>(assignment));
        merge.finish().map(|config| Loaded { config, file })
    }

    /// The file to read: the explicit one, else the first of those searched that exists.
    fn chosen(&self) -> Option<&Path> {
        self.explicit.as_deref().or_else(|| {
            self.search
                .iter()
                .map(PathBuf::as_path)
                .find(|path| path.is_file())
        })
    }
}

struct Merge {
    defaults: Value,
    merged: Value,
    applied: Vec<(String, Source)>,
    findings: Vec<Finding>,
}

impl Merge {
    /// Applies the file if there is one, and says which.
    fn file<T: DeserializeOwned + Validate>(&mut self, path: Option<&Path>) -> Option<PathBuf> {
        let path = path?;
        let at_line = |line| Source::File {
            path: path.to_owned(),
            line,
        };
        match fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.report(
                    "",
                    at_line(0),
                    "the file does not exist",
                    Some("check the path".to_owned()),
                );
            }
            Err(error) => self.report(
                "",
                at_line(0),
                &format!("the file cannot be read: {error}"),
                None,
            ),
            Ok(text) => match layers::from_toml(path, &text, &self.defaults) {
                Ok(assignments) => assignments
                    .into_iter()
                    .for_each(|assignment| self.apply::<T>(assignment)),
                Err(error) => {
                    let line = layers::line_at(&text, error.span().map_or(0, |span| span.start));
                    self.report(
                        "",
                        at_line(line),
                        &format!("not valid TOML: {}", error.message()),
                        None,
                    );
                }
            },
        }
        Some(path.to_owned())
    }

    /// Takes the first reading that the key's type accepts, or reports why none is.
    fn apply<T: DeserializeOwned + Validate>(&mut self, assignment: Assignment) {
        let Assignment {
            key,
            readings,
            source,
        } = match self.resolved(assignment) {
            Ok(assignment) => assignment,
            Err((key, source, message)) => return self.report(&key, source, &message, None),
        };
        let Some(default) = self.defaults.pointer(&pointer(&key)) else {
            // A section that has no keys left is the key itself.
            let is_it = |removed: &str| {
                let rest = removed.strip_prefix(&*key);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            let removed = T::REMOVED_KEYS.iter().find(|(name, _)| is_it(name));
            return match removed {
                Some((name, fix)) => {
                    self.report(name, source, "no longer a key", Some((*fix).to_owned()));
                }
                None => {
                    let fix = suggest::for_unknown(&key, &self.defaults);
                    self.report(&key, source, "unknown key", Some(fix));
                }
            };
        };
        let default = literal(default);
        let mut refused = None;
        for reading in readings {
            let mut alone = self.defaults.clone();
            set(&mut alone, &key, reading.clone());
            match T::deserialize(alone) {
                Ok(_) => {
                    set(&mut self.merged, &key, reading);
                    return self.applied.push((key, source));
                }
                Err(error) => refused = refused.or_else(|| Some(error.to_string())),
            }
        }
        let message = refused.unwrap_or_default();
        self.report(
            &key,
            source,
            &message,
            Some(format!("the default is {default}")),
        );
    }

    /// The value of `key` where `key_file` names a file that holds it, as secrets are mounted: a text without the line end, or a
    /// list with an element a line. Other assignments stay as they are.
    fn resolved(&self, assignment: Assignment) -> Result<Assignment, (String, Source, String)> {
        let base = assignment.key.strip_suffix("_file");
        let known = |key: &str| self.defaults.pointer(&pointer(key));
        let (Some(base), None) = (base, known(&assignment.key)) else {
            return Ok(assignment);
        };
        let Some(default @ (Value::String(_) | Value::Null | Value::Array(_))) = known(base) else {
            return Ok(assignment);
        };
        let Some(Value::String(path)) = assignment.readings.last() else {
            return Ok(assignment);
        };
        let text = fs::read_to_string(path).map_err(|error| {
            let message = format!("{path} cannot be read: {error}");
            (assignment.key.clone(), assignment.source.clone(), message)
        })?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let value = match default {
            Value::Array(_) => lines.map(Value::from).collect(),
            _ => Value::from(text.trim()),
        };
        Ok(Assignment {
            key: base.to_owned(),
            readings: vec![value],
            source: assignment.source,
        })
    }

    /// The merged value, checked as a whole.
    fn finish<T: DeserializeOwned + Validate>(mut self) -> Result<T, Error> {
        match T::deserialize(self.merged.take()) {
            Ok(config) => {
                for Problem { key, message } in config.problems() {
                    self.report(&key, self.source_of(&key), &message, None);
                }
                if self.findings.is_empty() {
                    Ok(config)
                } else {
                    Err(Error {
                        findings: self.findings,
                    })
                }
            }
            Err(error) => {
                self.report(
                    "",
                    Source::Default,
                    &format!("the values do not fit together: {error}"),
                    None,
                );
                Err(Error {
                    findings: self.findings,
                })
            }
        }
    }

    /// Where the value at `key`, or inside it, was last written; an element of a list (`key[0]`) is written where the list is.
    fn source_of(&self, key: &str) -> Source {
        let key = key.split_once('[').map_or(key, |(list, _)| list);
        let inside = |applied: &str| {
            applied == key
                || applied
                    .strip_prefix(key)
                    .is_some_and(|rest| rest.starts_with('.'))
        };
        let last = self
            .applied
            .iter()
            .rev()
            .find(|(applied, _)| inside(applied));
        last.map_or(Source::Default, |(_, source)| source.clone())
    }

    fn report(&mut self, key: &str, source: Source, message: &str, fix: Option<String>) {
        self.findings.push(Finding {
            key: key.to_owned(),
            source,
            message: message.to_owned(),
            fix,
        });
    }
}

/// The JSON pointer of a dotted path.
fn pointer(key: &str) -> String {
    key.split('.').fold(String::new(), |path, name| {
        path + "/" + &name.replace('~', "~0").replace('/', "~1")
    })
}

/// Replaces the value at a path that the defaults have.
fn set(tree: &mut Value, key: &str, value: Value) {
    if let Some(place) = tree.pointer_mut(&pointer(key)) {
        *place = value;
    }
}

#[cfg(test)]
mod tests;
