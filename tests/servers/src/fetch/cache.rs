//! Where fetched programs are kept. What is there is whole: it is made beside its place and moved into it.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};

/// A folder with a folder for each program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// `MEMFLEET_SERVERS_CACHE`; else for root a folder that the user who runs the servers may enter, which root's home is not;
    /// else one in the user's cache.
    pub fn find() -> Result<Self> {
        let root = rustix::process::geteuid().is_root();
        let folder = folder(root, |name| std::env::var_os(name));
        let folder = folder.context("neither MEMFLEET_SERVERS_CACHE nor HOME is set")?;
        Ok(Self { folder })
    }

    /// A cache in this folder.
    pub fn at(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    /// The folder of a program, if it was fetched.
    pub(super) fn get(&self, name: &str) -> Option<PathBuf> {
        let place = self.folder.join(name);
        place.is_dir().then_some(place)
    }

    /// The folder of a program. `make` fills it the first time; others who want the same wait.
    pub(super) fn get_or_make(
        &self,
        name: &str,
        make: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        if let Some(place) = self.get(name) {
            return Ok(place);
        }
        let cannot = || format!("cannot write to the cache {}", self.folder.display());
        fs::create_dir_all(&self.folder).with_context(cannot)?;
        let lock = File::create(self.folder.join(format!("{name}.lock"))).with_context(cannot)?;
        lock.lock().with_context(cannot)?;
        if let Some(place) = self.get(name) {
            return Ok(place);
        }
        eprintln!("fetching {name} into {}", self.folder.display());
        let begun = Instant::now();
        let unfinished = self.folder.join(format!("{name}.unfinished"));
        remove(&unfinished).with_context(cannot)?;
        fs::create_dir(&unfinished).with_context(cannot)?;
        make(&unfinished).with_context(|| format!("cannot fetch {name}"))?;
        open_to_all(&unfinished).with_context(cannot)?;
        let place = self.folder.join(name);
        fs::rename(&unfinished, &place).with_context(cannot)?;
        eprintln!("fetched {name} in {:.1} s", begun.elapsed().as_secs_f64());
        Ok(place)
    }
}

fn folder(root: bool, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name| {
        variable(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    if let Some(folder) = set("MEMFLEET_SERVERS_CACHE") {
        return Some(folder);
    }
    if root {
        return Some("/var/cache/memfleet/servers".into());
    }
    let cache = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))?;
    Some(cache.join("memfleet/servers"))
}

fn remove(folder: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Everybody may read and run what the owner may, whatever the umask was.
fn open_to_all(path: &Path) -> std::io::Result<()> {
    let about = fs::symlink_metadata(path)?;
    if about.is_symlink() {
        return Ok(());
    }
    let mode = about.permissions().mode();
    let readable = mode & 0o500;
    let opened = mode | readable >> 3 | readable >> 6;
    fs::set_permissions(path, Permissions::from_mode(opened))?;
    if about.is_dir() {
        for entry in fs::read_dir(path)? {
            open_to_all(&entry?.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
