//! The configuration of a process, the same for a node (`memfleet up`) and for the roles of a fleet (`memfleet run`): one file,
//! translated into the services' own options in [`crate::process`]. The defaults are those of a node.
//! Every key is documented in docs/configuration.md, which a test compares with these defaults.

mod assembly;
mod audit;
mod auth;
mod consolidator;
mod graph;
mod jwt;
mod language_model;
mod peers;
mod storage;
mod tls;
mod vectors;

use std::path::PathBuf;

use memfleet_domain::quality::SearchQuality;
use memfleet_models::{DEFAULT_MODEL, MULTILINGUAL_MODEL};
use memfleet_runtime::config::{ByteSize, Problem, Validate};
use memfleet_runtime::{lifecycle, server, telemetry};
use memfleet_understanding::ReaderModel;
use serde::{Deserialize, Serialize};

use crate::role::Role;

pub use self::assembly::Assembly;
pub use self::audit::Audit;
pub use self::auth::{Auth, Internal, KeyEntry};
pub use self::consolidator::Consolidator;
pub use self::graph::Graph;
pub use self::jwt::Jwt;
pub use self::language_model::LanguageModel;
pub use self::peers::{Peers, elsewhere};
pub use self::storage::{Queue, Store};
pub use self::tls::Tls;
pub use self::vectors::Vectors;

/// Everything that can be set for a process.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where memory is kept.
    pub store: Store,
    /// Where work waits.
    pub queue: Queue,
    /// Where vectors are besides.
    pub vectors: Vectors,
    /// Where the semantic graph is.
    pub graph: Graph,
    /// Where the other roles are.
    pub peers: Peers,
    /// The gRPC address and its limits.
    pub server: server::Options,
    /// Who may call.
    pub auth: Auth,
    /// What is written down of it.
    pub audit: Audit,
    /// How roles know each other.
    pub internal: Internal,
    /// Encryption.
    pub tls: Tls,
    /// The embedding model.
    pub model: Model,
    /// Language models behind the agents.
    pub language_model: LanguageModel,
    /// Writing.
    pub ingestion: Ingestion,
    /// Reading.
    pub retrieval: Retrieval,
    /// How memory enters prompts.
    pub assembly: Assembly,
    /// Narratives.
    pub consolidator: Consolidator,
    /// Logs and metrics.
    pub telemetry: telemetry::Options,
    /// Stopping.
    pub lifecycle: lifecycle::Options,
}

/// The embedding model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Model {
    /// Name of the model, as `memfleet model list` shows it. Default `all-MiniLM-L6-v2`.
    pub name: String,
    /// Name of the model of spaces whose language that one does not read well; empty for none.
    /// Default `multilingual-e5-small`.
    pub multilingual: String,
    /// Directory that holds models. Default: `memfleet/models` in the user's cache directory.
    pub directory: Option<PathBuf>,
    /// Threads of the model; 0 takes one a core. Default 0.
    pub threads: usize,
    /// Texts that may wait for a model, and for the reader of turns; more are refused with
    /// `RESOURCE_EXHAUSTED`. Default 4096.
    pub queue: usize,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            name: DEFAULT_MODEL.to_owned(),
            multilingual: MULTILINGUAL_MODEL.to_owned(),
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
    /// Passages of the largest space whose index is held in memory; of a larger one only an outline is, and the database finds its
    /// candidates. A node holds every space that it searches. Default 200,000.
    pub held_passages: u32,
    /// Passages of the largest space whose index is built before its first search; that of a larger one is built while the
    /// database answers. Default 20,000.
    pub cold_passages: u32,
    /// Memory for token vectors that were read. Default 256 MiB.
    pub token_cache: ByteSize,
    /// Passages that the first stage hands to the second. Default 600.
    pub candidates: usize,
    /// Quality of searches that do not name one: `fast`, `balanced` or `thorough`. Where it is not
    /// `fast`, every space gets vectors of both models. Default `fast`.
    pub quality: SearchQuality,
}

impl Default for Retrieval {
    fn default() -> Self {
        Self {
            index_cache: ByteSize::mebibytes(256),
            held_passages: 200_000,
            cold_passages: 20_000,
            token_cache: ByteSize::mebibytes(256),
            candidates: 600,
            quality: SearchQuality::Fast,
        }
    }
}

impl Config {
    /// Name of the multilingual model, where it is another one.
    pub fn multilingual_model(&self) -> Option<&str> {
        let name = &*self.model.multilingual;
        (!name.is_empty() && name != self.model.name).then_some(name)
    }

    /// True where a model is configured on which the reader of turns builds: facts are statements.
    pub fn has_reader(&self) -> bool {
        [&*self.model.name, &*self.model.multilingual].contains(&ReaderModel::BASE)
    }

    /// Name of the model whose vectors all spaces have beside those that they serve, where searches
    /// are balanced.
    pub fn second_model(&self) -> Option<&str> {
        let is_balanced = self.retrieval.quality >= SearchQuality::Balanced;
        self.multilingual_model().filter(|_| is_balanced)
    }

    /// The problem of a process with these roles that strangers can reach: nobody has to say who calls, or others may listen. A
    /// certificate of this process alone keeps nobody out; asking callers for theirs does, between roles.
    pub fn exposed(&self, roles: &[Role]) -> Option<Problem> {
        if self.server.is_local() || self.server.insecure {
            return None;
        }
        let (authenticates, remedy) = if roles.contains(&Role::Gateway) {
            let has_keys = !self.auth.is_open();
            (has_keys, "auth.bootstrap_key, auth.keys or auth.jwt")
        } else {
            let has_secret = self.internal.token.is_some() || self.tls.is_mutual();
            (has_secret, "internal.token, or tls.client_ca")
        };
        let message = if !authenticates {
            format!(
                "is reachable from other machines while nobody has to authenticate: set {remedy}, a loopback address, or server.insecure if the network itself keeps strangers out"
            )
        } else if self.tls.certificate.is_none() && !self.server.plaintext {
            "is reachable from other machines in the clear, credentials and memory included: set tls.certificate and tls.key, a loopback address, or server.plaintext if the network is private or something before it ends TLS".to_owned()
        } else {
            return None;
        };
        Some(Problem::new("server.address", message))
    }

    /// The problem of exposure where no role at all could run with this.
    fn exposed_whatever_the_role(&self) -> Option<Problem> {
        let problems: Option<Vec<_>> = Role::ALL
            .iter()
            .map(|role| self.exposed(&[*role]))
            .collect();
        problems?.into_iter().next()
    }
}

impl Validate for Config {
    const REMOVED_KEYS: &[(&str, &str)] = &[
        (
            "constructor.facts",
            "remove it: facts are statements where `model.multilingual` (or `model.name`) is `multilingual-e5-small`",
        ),
        (
            "retrieval.answers",
            "remove it: answers without a language model are quotations",
        ),
    ];

    fn problems(&self) -> Vec<Problem> {
        let sections = [
            ("store", self.store.problems()),
            ("queue", self.queue.problems()),
            ("vectors", self.vectors.problems()),
            ("graph", self.graph.problems()),
            ("peers", self.peers.problems()),
            ("server", self.server.problems()),
            ("auth", self.auth.problems()),
            ("audit", self.audit.problems()),
            ("internal", self.internal.problems()),
            ("tls", self.tls.problems()),
            ("language_model", self.language_model.problems()),
            ("assembly", self.assembly.problems()),
            ("consolidator", self.consolidator.problems()),
            ("telemetry", self.telemetry.problems()),
            ("lifecycle", self.lifecycle.problems()),
        ];
        let mut problems = Vec::new();
        for (section, found) in sections {
            problems.extend(found.into_iter().map(|problem| problem.under(section)));
        }
        let rules = [
            (
                "vectors.url",
                self.vectors.url.is_some() && !self.store.is_shared(),
                "needs a `store.url` of PostgreSQL: a node searches its vectors in memory",
            ),
            (
                "graph.url",
                self.graph.url.is_some() && !self.store.is_shared(),
                "needs a `store.url` of PostgreSQL: a node keeps its graph in its file",
            ),
            (
                "queue.url",
                self.store.is_shared() != self.queue.is_shared(),
                "does not go with `store.url`: a SQLite file has its own queue (`inproc:`), PostgreSQL goes with `nats://host:port`",
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
                "retrieval.quality",
                self.retrieval.quality >= SearchQuality::Balanced
                    && self.model.multilingual.is_empty(),
                "needs `model.multilingual`: a balanced search compares vectors of two models",
            ),
            (
                "retrieval.candidates",
                self.retrieval.candidates < 100,
                "must be at least 100",
            ),
        ];
        problems.extend(
            rules
                .into_iter()
                .filter(|rule| rule.1)
                .map(|(key, _, message)| Problem::new(key, message)),
        );
        problems.extend(self.exposed_whatever_the_role());
        problems
    }
}

#[cfg(test)]
mod tests;
