//! The small configuration of a node (`memfleet up`): one file, translated into the services' own options in [`crate::node`].
//! Every key is documented in docs/configuration.md, which a test compares with these defaults.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use memfleet_domain::ids::TenantId;
use memfleet_rpc::auth::{KeyHash, Keys};
use memfleet_runtime::config::{ByteSize, Problem, Validate};
use memfleet_runtime::{lifecycle, server, telemetry};
use serde::{Deserialize, Serialize};

/// Everything that can be set for a node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeConfig {
    /// Where memory is kept.
    pub store: Store,
    /// The gRPC address and its limits.
    pub server: server::Options,
    /// Who may call.
    pub auth: Auth,
    /// The embedding model.
    pub model: Model,
    /// Writing.
    pub ingestion: Ingestion,
    /// Reading.
    pub retrieval: Retrieval,
    /// Logs and metrics.
    pub telemetry: telemetry::Options,
    /// Stopping.
    pub lifecycle: lifecycle::Options,
}

/// Where memory is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Store {
    /// `sqlite:` and the path of the database file. Default `sqlite:memfleet.db`.
    pub url: String,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            url: "sqlite:memfleet.db".to_owned(),
        }
    }
}

impl Store {
    /// The database file.
    pub fn path(&self) -> Option<PathBuf> {
        let path = self.url.strip_prefix("sqlite:")?;
        let path = path.strip_prefix("//").unwrap_or(path);
        (!path.is_empty()).then(|| PathBuf::from(path))
    }

    /// What is wrong with the address. SQLite would take some more forms, but not as what they say.
    fn problem(&self) -> Option<&'static str> {
        let Some(path) = self.path() else {
            return Some("must be `sqlite:` and a path, for example `sqlite:memfleet.db`");
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

/// Who may call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Auth {
    /// API keys as `tenant:hash`; the hash is the BLAKE3 of the key in hexadecimal, as `memfleet key` prints it. Without
    /// keys every caller is the tenant `default`, and only a loopback address is allowed. Default none.
    pub keys: Vec<String>,
}

/// The embedding model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Model {
    /// Name of the model, as `memfleet model list` shows it. Default `all-MiniLM-L6-v2`.
    pub name: String,
    /// Directory that holds models. Default: `memfleet/models` in the user's cache directory.
    pub directory: Option<PathBuf>,
    /// Threads of the model; 0 takes one a core. Default 0.
    pub threads: usize,
    /// Texts that may wait for the model; more are refused with `RESOURCE_EXHAUSTED`. Default 4096.
    pub queue: usize,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            name: "all-MiniLM-L6-v2".to_owned(),
            directory: None,
            threads: 0,
            queue: 4096,
        }
    }
}

/// Writing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ingestion {
    /// Turns that may wait to be stored. A tenant gets half of what the others leave; beyond that `Remember` is
    /// `RESOURCE_EXHAUSTED`. Default 100000.
    pub max_queued_turns: u64,
    /// The same in bytes. Default 256 MiB.
    pub max_queued_size: ByteSize,
    /// Turns embedded and committed together. Default 64.
    pub turns_per_round: u32,
}

impl Default for Ingestion {
    fn default() -> Self {
        Self {
            max_queued_turns: 100_000,
            max_queued_size: ByteSize::mebibytes(256),
            turns_per_round: 64,
        }
    }
}

/// Reading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retrieval {
    /// Memory for the indexes of spaces; the least recently used leave first. Default 256 MiB.
    pub index_cache: ByteSize,
    /// Memory for token vectors that were read. Default 256 MiB.
    pub token_cache: ByteSize,
    /// Passages that the first stage hands to the second. Default 600.
    pub candidates: usize,
}

impl Default for Retrieval {
    fn default() -> Self {
        Self {
            index_cache: ByteSize::mebibytes(256),
            token_cache: ByteSize::mebibytes(256),
            candidates: 600,
        }
    }
}

impl Auth {
    /// The keys; all of them, since [`Validate`] refused a configuration with others.
    pub fn keys(&self) -> Keys {
        let entries = self.keys.iter().filter_map(|key| key.parse().ok());
        Keys::new(entries.map(|entry: KeyEntry| (entry.tenant, entry.hash)))
    }
}

/// One of [`Auth::keys`]: whom a key speaks for, and what is kept of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyEntry {
    /// Whose key it is.
    pub tenant: TenantId,
    /// The hash of the key.
    pub hash: KeyHash,
}

impl fmt::Display for KeyEntry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.tenant, self.hash)
    }
}

impl FromStr for KeyEntry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (tenant, hash) = text.rsplit_once(':').ok_or("is not `tenant:hash`")?;
        Ok(Self {
            tenant: TenantId::new(tenant).map_err(|error| format!("the tenant {error}"))?,
            hash: hash.parse().map_err(|error| format!("the hash {error}"))?,
        })
    }
}

impl Validate for NodeConfig {
    fn problems(&self) -> Vec<Problem> {
        let mut problems = self.server.problems_under("server");
        problems.extend(self.telemetry.problems_under("telemetry"));
        problems.extend(self.lifecycle.problems_under("lifecycle"));
        for (index, key) in self.auth.keys.iter().enumerate() {
            if let Err(message) = key.parse::<KeyEntry>() {
                problems.push(Problem::new(format!("auth.keys[{index}]"), message));
            }
        }
        let rules = [
            (
                "store.url",
                self.store.problem().is_some(),
                self.store.problem().unwrap_or_default(),
            ),
            ("model.queue", self.model.queue == 0, "must be at least 1"),
            (
                "ingestion.max_queued_turns",
                self.ingestion.max_queued_turns == 0,
                "must be at least 1",
            ),
            (
                "ingestion.max_queued_size",
                self.ingestion.max_queued_size < ByteSize::kibibytes(1),
                "must be at least 1KiB",
            ),
            (
                "ingestion.turns_per_round",
                self.ingestion.turns_per_round == 0,
                "must be at least 1",
            ),
            (
                "retrieval.candidates",
                self.retrieval.candidates < 100,
                "must be at least 100",
            ),
            (
                "server.address",
                !self.server.is_loopback() && self.auth.keys.is_empty(),
                "is reachable from other machines while nobody has to authenticate: set auth.keys (see `memfleet key`) or a loopback address",
            ),
        ];
        problems.extend(
            rules
                .into_iter()
                .filter(|rule| rule.1)
                .map(|(key, _, message)| Problem::new(key, message)),
        );
        problems
    }
}

#[cfg(test)]
mod tests {
    use memfleet_runtime::config::{Loader, leaves};

    use super::*;

    #[test]
    fn defaults_are_usable_as_they_are() {
        assert_eq!(NodeConfig::default().problems(), []);
    }

    #[test]
    fn an_entry_reads_back_as_it_was_written() {
        let entry = KeyEntry {
            tenant: TenantId::new("acme: the second").unwrap(),
            hash: KeyHash::of("key"),
        };
        assert_eq!(entry.to_string().parse(), Ok(entry));
        for wrong in ["acme", "acme:", ":abc", "acme:abc"] {
            assert!(wrong.parse::<KeyEntry>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_public_address_without_keys_is_refused() {
        let mut config = NodeConfig::default();
        config.server.address = "0.0.0.0:9460".parse().unwrap();
        assert_eq!(config.problems()[0].key, "server.address");
        config.auth.keys = vec![format!("acme:{}", KeyHash::of("key"))];
        assert_eq!(config.problems(), []);
    }

    const DOCUMENT: &str = include_str!("../../../docs/configuration.md");

    #[test]
    fn the_document_names_every_key_with_its_default_and_no_other() {
        let row = |(key, default): (String, String)| match default.as_str() {
            "none" => format!("| `{key}` | none |"),
            value => format!("| `{key}` | `{value}` |"),
        };
        let rows = leaves(&NodeConfig::default())
            .into_iter()
            .map(row)
            .collect::<Vec<_>>();
        let missing = rows
            .iter()
            .filter(|row| !DOCUMENT.contains(*row))
            .collect::<Vec<_>>();
        assert_eq!(missing, Vec::<&String>::new());
        assert_eq!(DOCUMENT.matches("\n| `").count(), rows.len());
    }

    #[test]
    fn the_sample_of_the_document_is_accepted() {
        let sample = DOCUMENT
            .split("```toml")
            .nth(1)
            .and_then(|rest| rest.split("```").next())
            .unwrap();
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("memfleet.toml");
        std::fs::write(&file, sample).unwrap();
        let loaded = Loader::defaults_only()
            .file(Some(file))
            .load::<NodeConfig>()
            .unwrap();
        assert_eq!(loaded.config.server.address.port(), 9460);
    }

    #[test]
    fn an_address_without_a_file_or_with_parameters_is_refused_with_the_fix() {
        for (url, fix) in [
            ("sqlite:", "`sqlite:` and a path"),
            ("sqlite::memory:", "give its path"),
            ("sqlite://:memory:", "give its path"),
            ("sqlite:memory.db?mode=ro", "leave out `?`"),
            ("sqlite:?mode=memory", "leave out `?`"),
        ] {
            let mut config = NodeConfig::default();
            config.store.url = url.to_owned();
            let problems = config.problems();
            assert_eq!(problems[0].key, "store.url", "{url}");
            assert!(problems[0].message.contains(fix), "{url}: {problems:?}");
        }
    }

    #[test]
    fn every_problem_is_named() {
        let mut config = NodeConfig::default();
        config.store.url = "mysql:x".to_owned();
        config.auth.keys = vec!["acme".to_owned()];
        config.retrieval.candidates = 1;
        let keys = config
            .problems()
            .into_iter()
            .map(|problem| problem.key)
            .collect::<Vec<_>>();
        assert_eq!(keys, ["auth.keys[0]", "store.url", "retrieval.candidates"]);
    }
}
