//! Where memory is kept, and where work waits: adapters are chosen by the scheme of a URL.

use std::path::PathBuf;

use memfleet_runtime::config::{Problem, ServiceUrl, Validate};
use serde::{Deserialize, Serialize};

/// Where memory is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Store {
    /// `sqlite:` and the path of the database file, or `postgres://user:password@host:port/database` of a fleet.
    /// Default `sqlite:memfleet.db`.
    pub url: ServiceUrl,
    /// The same database as its owner, for migrations. Default none.
    pub owner_url: Option<ServiceUrl>,
    /// Whether a role migrates the database when it starts, as the owner. Default false: `memfleet migrate` does it.
    pub migrate: bool,
    /// Connections that a process opens to PostgreSQL at most. Default 16.
    pub max_connections: u32,
    /// Exchanges under way, and conversations that are known again, of a tenant that are kept before their end; beyond that those that end
    /// first go. Default 100,000.
    pub max_exchanges: u32,
    /// Injections of a tenant that are kept; beyond that the oldest go, whatever the policy's retention. Default 1,000,000.
    pub max_injections: u32,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            url: "sqlite:memfleet.db".into(),
            owner_url: None,
            migrate: false,
            max_connections: 16,
            max_exchanges: 100_000,
            max_injections: 1_000_000,
        }
    }
}

impl Store {
    /// The database file.
    pub fn path(&self) -> Option<PathBuf> {
        let path = self.url.expose().strip_prefix("sqlite:")?;
        let path = path.strip_prefix("//").unwrap_or(path);
        (!path.is_empty()).then(|| PathBuf::from(path))
    }

    /// Problem of a database file whose folder is not there.
    pub fn problem_of_folder(&self) -> Option<Problem> {
        let path = std::path::absolute(self.path()?).ok()?;
        let folder = path.parent()?;
        let message = format!(
            "the folder {} does not exist: make it, or name another file",
            folder.display()
        );
        (!folder.is_dir()).then(|| Problem::new("url", message))
    }

    /// Whether roles in several processes can share it.
    pub fn is_shared(&self) -> bool {
        is_postgres(&self.url)
    }

    /// What is wrong with the address. SQLite would take some more forms, but not as what they say.
    fn problem(&self) -> Option<&'static str> {
        if self.is_shared() {
            return None;
        }
        let Some(path) = self.path() else {
            return Some(
                "must be `sqlite:` and a path, for example `sqlite:memfleet.db`, or `postgres://user@host/database`",
            );
        };
        let path = path.to_string_lossy();
        if path == ":memory:" {
            return Some(
                "cannot be `:memory:`, a node keeps memory in a file: give its path, for example `sqlite:memfleet.db`",
            );
        }
        path.contains('?')
            .then_some("takes no parameters: leave out `?` and what follows it")
    }
}

impl Validate for Store {
    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        problems.extend(self.problem().map(|message| Problem::new("url", message)));
        if self.owner_url.as_ref().is_some_and(|url| !is_postgres(url)) {
            let message = "must be `postgres://user@host/database`";
            problems.push(Problem::new("owner_url", message));
        }
        if self.migrate && self.owner_url.is_none() {
            let message = "needs `store.owner_url`: the roles themselves may not change tables";
            problems.push(Problem::new("migrate", message));
        }
        if self.max_connections < 2 {
            problems.push(Problem::new("max_connections", "must be at least 2"));
        }
        problems
    }
}

fn is_postgres(url: &ServiceUrl) -> bool {
    matches!(url.scheme(), "postgres" | "postgresql")
}

/// Where accepted turns wait to be stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Queue {
    /// `inproc:`, a table of the same SQLite file, or `nats://host:port` (several with commas between) of a fleet.
    /// Default `inproc:`.
    pub url: ServiceUrl,
    /// Copies of each message that NATS keeps on different servers, 1 to 5. Default 1.
    pub replicas: u8,
    /// File with the credentials of a NATS user. Default none.
    pub credentials: Option<PathBuf>,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            url: "inproc:".into(),
            replicas: 1,
            credentials: None,
        }
    }
}

impl Queue {
    /// Whether roles in several processes can share it.
    pub fn is_shared(&self) -> bool {
        matches!(self.url.scheme(), "nats" | "tls")
    }
}

impl Validate for Queue {
    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.url.expose() != "inproc:" && !self.is_shared() {
            let message = "must be `inproc:` or `nats://host:port`";
            problems.push(Problem::new("url", message));
        }
        if !(1..=5).contains(&self.replicas) {
            problems.push(Problem::new("replicas", "must lie between 1 and 5"));
        }
        problems
    }
}
