//! The servers that all tests of a run share, and the variables by which tests find them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, anyhow};
use tempfile::TempDir;

use crate::{Durability, Nats, Neo4j, Postgres, fetch};

/// Address of a PostgreSQL with pgvector; its user is a superuser.
pub const POSTGRES_URL: &str = "MEMFLEET_TEST_POSTGRES_URL";
/// Folder with PostgreSQL's programs, for tests that start a server of their own or call `psql` and `pg_dump`.
pub const POSTGRES_BIN: &str = "MEMFLEET_TEST_POSTGRES_BIN";
/// Address of a NATS with JetStream.
pub const NATS_URL: &str = "MEMFLEET_TEST_NATS_URL";
/// The NATS program, for tests that start a server of their own.
pub const NATS_SERVER: &str = "MEMFLEET_TEST_NATS_SERVER";
/// Address of a Neo4j that asks for no password.
pub const NEO4J_URL: &str = "MEMFLEET_TEST_NEO4J_URL";
/// Folder with Neo4j's libraries, for tests that start a server of their own.
pub const NEO4J_LIB: &str = "MEMFLEET_TEST_NEO4J_LIB";

/// Every message waits for the disk.
const SYNCHRONOUS: &str = "jetstream { sync_interval: always }";

type Variables = Vec<(&'static str, OsString)>;

/// Servers that run until this is dropped. Fields are dropped in order: the servers end before their folder goes.
#[derive(Debug)]
pub struct Environment {
    variables: Variables,
    postgres: Option<Postgres>,
    nats: Option<Nats>,
    neo4j: Option<Neo4j>,
    _folder: TempDir,
}

impl Environment {
    /// Fetches and starts what the caller's variables do not name already; says what it does on stderr.
    pub fn start(
        caller: impl Fn(&str) -> Option<OsString> + Sync,
        durability: Durability,
    ) -> Result<Self> {
        let set = |name: &str| caller(name).filter(|value| !value.is_empty());
        let folder = tempfile::Builder::new().prefix("memfleet-").tempdir()?;
        let (postgres, neo4j, nats) = std::thread::scope(|scope| {
            let postgres = scope.spawn(|| postgres(&set, folder.path(), durability));
            let neo4j = scope.spawn(|| neo4j(&set, folder.path()));
            let nats = nats(&set, folder.path(), durability);
            let panicked = |name| anyhow!("{name}: the start panicked");
            (
                postgres.join().map_err(|_| panicked("PostgreSQL")),
                neo4j.join().map_err(|_| panicked("Neo4j")),
                nats,
            )
        });
        let ((postgres, mut variables), (neo4j, more)) = (postgres??, neo4j??);
        variables.extend(more);
        let (nats, more) = nats?;
        variables.extend(more);
        Ok(Self {
            variables,
            postgres,
            nats,
            neo4j,
            _folder: folder,
        })
    }

    /// Names and values, all six.
    pub fn variables(&self) -> impl Iterator<Item = (&'static str, &OsString)> {
        self.variables.iter().map(|(name, value)| (*name, value))
    }

    /// The PostgreSQL that was started here.
    pub fn postgres(&self) -> Option<&Postgres> {
        self.postgres.as_ref()
    }

    /// The NATS that was started here.
    pub fn nats(&self) -> Option<&Nats> {
        self.nats.as_ref()
    }

    /// The Neo4j that was started here.
    pub fn neo4j(&self) -> Option<&Neo4j> {
        self.neo4j.as_ref()
    }
}

fn postgres(
    set: &dyn Fn(&str) -> Option<OsString>,
    folder: &Path,
    durability: Durability,
) -> Result<(Option<Postgres>, Variables)> {
    let binaries = match set(POSTGRES_BIN) {
        Some(binaries) => PathBuf::from(binaries),
        None => fetch::postgres()?,
    };
    let mut variables = vec![(POSTGRES_BIN, binaries.clone().into())];
    if let Some(url) = set(POSTGRES_URL) {
        variables.push((POSTGRES_URL, url));
        return Ok((None, variables));
    }
    let begun = Instant::now();
    let server = Postgres::start_from(&binaries, folder, durability)?;
    tell("PostgreSQL", begun, &server.url());
    variables.push((POSTGRES_URL, server.url().into()));
    Ok((Some(server), variables))
}

fn nats(
    set: &dyn Fn(&str) -> Option<OsString>,
    folder: &Path,
    durability: Durability,
) -> Result<(Option<Nats>, Variables)> {
    let program = match set(NATS_SERVER) {
        Some(program) => PathBuf::from(program),
        None => fetch::nats()?,
    };
    let mut variables = vec![(NATS_SERVER, program.clone().into())];
    if let Some(url) = set(NATS_URL) {
        variables.push((NATS_URL, url));
        return Ok((None, variables));
    }
    let begun = Instant::now();
    let configuration = match durability {
        Durability::Process => "",
        Durability::Machine => SYNCHRONOUS,
    };
    let server = Nats::start_from(&program, folder, configuration)?;
    tell("NATS", begun, &server.url());
    variables.push((NATS_URL, server.url().into()));
    Ok((Some(server), variables))
}

fn neo4j(
    set: &dyn Fn(&str) -> Option<OsString>,
    folder: &Path,
) -> Result<(Option<Neo4j>, Variables)> {
    let libraries = match set(NEO4J_LIB) {
        Some(libraries) => PathBuf::from(libraries),
        None => fetch::neo4j()?,
    };
    let mut variables = vec![(NEO4J_LIB, libraries.clone().into())];
    if let Some(url) = set(NEO4J_URL) {
        variables.push((NEO4J_URL, url));
        return Ok((None, variables));
    }
    let begun = Instant::now();
    let server = Neo4j::start_from(&libraries, folder)?;
    tell("Neo4j", begun, &server.url());
    variables.push((NEO4J_URL, server.url().into()));
    Ok((Some(server), variables))
}

fn tell(name: &str, begun: Instant, url: &str) {
    let seconds = begun.elapsed().as_secs_f64();
    eprintln!("{name} started in {seconds:.1} s: {url}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_the_caller_names_are_used_and_none_is_started() {
        let caller = |name: &str| Some(OsString::from(format!("the caller's {name}")));
        let environment = Environment::start(caller, Durability::Process).unwrap();
        assert!(environment.postgres().is_none() && environment.nats().is_none());
        assert!(environment.neo4j().is_none());
        let names = [
            POSTGRES_URL,
            POSTGRES_BIN,
            NATS_URL,
            NATS_SERVER,
            NEO4J_URL,
            NEO4J_LIB,
        ];
        for name in names {
            let found = environment.variables().find(|(key, _)| *key == name);
            assert_eq!(found, Some((name, &format!("the caller's {name}").into())));
        }
    }
}
