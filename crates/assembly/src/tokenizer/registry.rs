//! The tokenizers that can be asked for: the built-in ones and those of configured files, each loaded when it is first used.

use super::file::Unreadable;
use super::{Tokenizer, UnknownTokenizer};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// Tokenizers by name. Cheap to clone; clones share what was loaded.
#[derive(Clone, Debug, Default)]
pub struct Tokenizers {
    files: Arc<BTreeMap<String, File>>,
}

#[derive(Debug)]
struct File {
    path: PathBuf,
    loaded: OnceLock<Result<Tokenizer, Unreadable>>,
}

/// Why a tokenizer cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum TokenizersError {
    /// Neither built in nor configured.
    #[error("unknown tokenizer `{name}`; known are {}", known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What can be asked for.
        known: Vec<String>,
    },
    /// A file's name is that of a built-in tokenizer.
    #[error("tokenizer `{0}` is built in: a file needs another name")]
    BuiltIn(String),
    /// Its file cannot be read, or is no tokenizer.
    #[error("tokenizer `{name}` cannot be read from {}: {reason}", path.display())]
    Unreadable {
        /// What was asked for.
        name: String,
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        reason: Unreadable,
    },
}

impl Tokenizers {
    /// The built-in tokenizers and those of files (`tokenizer.json`) by name. No file is opened yet.
    pub fn new(
        files: impl IntoIterator<Item = (String, PathBuf)>,
    ) -> Result<Self, TokenizersError> {
        let mut known = BTreeMap::new();
        for (name, path) in files {
            if Tokenizer::NAMES.contains(&name.as_str()) {
                return Err(TokenizersError::BuiltIn(name));
            }
            let loaded = OnceLock::new();
            known.insert(name, File { path, loaded });
        }
        Ok(Self {
            files: Arc::new(known),
        })
    }

    /// Every name that can be asked for: the built-in ones first.
    pub fn names(&self) -> Vec<&str> {
        let files = self.files.keys().map(String::as_str);
        Tokenizer::NAMES.into_iter().chain(files).collect()
    }

    /// A tokenizer by name. Reads a vocabulary on its first use, which takes up to a second: not for async threads.
    pub fn get(&self, name: &str) -> Result<Tokenizer, TokenizersError> {
        let Some(file) = self.files.get(name) else {
            return Tokenizer::named(name).map_err(|UnknownTokenizer(name)| {
                TokenizersError::Unknown {
                    name,
                    known: self.names().into_iter().map(str::to_owned).collect(),
                }
            });
        };
        let loaded = file
            .loaded
            .get_or_init(|| Tokenizer::from_file(name, &file.path));
        loaded
            .clone()
            .map_err(|reason| TokenizersError::Unreadable {
                name: name.to_owned(),
                path: file.path.clone(),
                reason,
            })
    }
}
