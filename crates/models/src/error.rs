//! What can go wrong with a model on disk.

use std::io;
use std::path::{Path, PathBuf};

/// Why a model could not be fetched, built, opened or verified.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No model of this name is in the registry.
    #[error("model {0} is not known")]
    Unknown(String),
    /// No folder to keep models in could be told from the environment.
    #[error("no model folder: set MEMFLEET_MODELS, XDG_CACHE_HOME or HOME")]
    NoRoot,
    /// A file or folder could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// What was touched.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The directory holds no model, or its manifest is damaged.
    #[error("{path} is not a model directory: {reason}")]
    NotAModel {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file is not what its pinned hash says.
    #[error("{file} has the wrong content: SHA-256 {found}, expected {expected}")]
    WrongHash {
        /// The file.
        file: PathBuf,
        /// What was computed.
        found: String,
        /// What was pinned.
        expected: String,
    },
    /// A download ended early, several times.
    #[error("{url} was cut off at {received} of {expected} bytes")]
    Truncated {
        /// What was fetched.
        url: String,
        /// Bytes that came.
        received: u64,
        /// Bytes that were expected.
        expected: u64,
    },
    /// A server could not be reached or refused.
    #[error("{url}: {reason}")]
    Network {
        /// What was fetched.
        url: String,
        /// What the client said.
        reason: String,
    },
    /// A file whose hash is right cannot be read as what it should be.
    #[error("{file} is damaged: {reason}")]
    Damaged {
        /// The file.
        file: PathBuf,
        /// The fault in it.
        reason: String,
    },
    /// A folder that was named holds the files of no source.
    #[error("{folder} does not hold what model {name} is made of: {files}")]
    NotInFolder {
        /// The model.
        name: String,
        /// The files that it must hold.
        files: String,
        /// The folder.
        folder: PathBuf,
    },
    /// All sources failed.
    #[error(
        "model {name} could not be fetched; tried:\n{}\nto use files you already have, put {files} in a folder and run: memfleet model pull {name} --from FOLDER",
        lines(attempts)
    )]
    Unreachable {
        /// The model.
        name: String,
        /// The files a local folder must hold.
        files: String,
        /// One line a source: what was tried and why it failed.
        attempts: Vec<String>,
    },
    /// The checkpoint could not be turned into an ONNX file.
    #[error(transparent)]
    Export(#[from] crate::export::Error),
    /// The model does not load or run.
    #[error(transparent)]
    Encoder(#[from] memfleet_encoder::Error),
    /// The model's vectors are too far from the reference.
    #[error(
        "vectors differ from the reference: lowest cosine {found:.4}, at least {least} expected"
    )]
    Inaccurate {
        /// The lowest cosine of the reference sentences.
        found: f32,
        /// What is required.
        least: f32,
    },
}

impl Error {
    /// For `map_err` on a file operation.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }
}

fn lines(attempts: &[String]) -> String {
    attempts
        .iter()
        .map(|attempt| format!("  - {attempt}"))
        .collect::<Vec<_>>()
        .join("\n")
}
