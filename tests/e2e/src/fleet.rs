//! A fleet of real processes over servers of its own.

use std::path::{Path, PathBuf};

use anyhow::Result;
use memfleet_servers::{Command, Durability, Nats, Neo4j, Postgres, Program, free_port};
use memfleet_tls::Files;
use memfleet_tls::testing::Authority;
use tempfile::TempDir;

use crate::{OPERATOR_KEY, binary, known_keys};

/// What the roles of a fleet know each other by.
const SECRET: &str = "the secret of a fleet under test";

/// Where everything listens.
const HOST: &str = "127.0.0.1";

/// What a role logs when it answers.
const READY: &str = "serving";

/// Two of every role that may be more than one, the servers, and the gateway's address. Ends when it is dropped, or with this
/// process.
pub struct Fleet {
    /// The roles by name; the gateway is the last.
    pub roles: Vec<Role>,
    /// Its queue.
    pub nats: Nats,
    /// Its store.
    pub postgres: Postgres,
    /// Its semantic graph, where it has one of its own.
    pub graph: Option<Neo4j>,
    gateway: String,
    authority: Option<PathBuf>,
    settings: Vec<(&'static str, String)>,
    folder: TempDir,
}

/// A process of a fleet.
pub struct Role {
    /// What it is.
    pub name: &'static str,
    /// The process.
    pub program: Program,
}

impl Fleet {
    /// Starts everything but a graph.
    pub fn start() -> Result<Self> {
        Self::start_with(None, &[], None)
    }

    /// The same with a semantic graph of its own.
    pub fn start_with_graph() -> Result<Self> {
        Self::start_with(None, &[], Some(Neo4j::start))
    }

    /// The same with more settings, for example `MEMFLEET_TELEMETRY__OTLP_URL`.
    pub fn start_with_settings(settings: &[(&'static str, String)]) -> Result<Self> {
        Self::start_with(None, settings, None)
    }

    /// The same with every connection between roles encrypted, and both sides certified.
    pub fn start_encrypted(authority: &Authority) -> Result<Self> {
        Self::start_with(Some(authority), &[], None)
    }

    fn start_with(
        authority: Option<&Authority>,
        settings: &[(&'static str, String)],
        graph: Option<fn(&Path) -> Result<Neo4j>>,
    ) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let place = folder.path();
        let files = authority.map(|authority| authority.files(place, &[HOST]));
        let postgres = Postgres::start(place, Durability::Process)?;
        let nats = Nats::start(place, "max_payload: 32MB")?;
        let graph = graph.map(|start| start(place)).transpose()?;
        migrate(&postgres)?;
        let ports = Ports::free()?;
        let mut common = common(&postgres, &nats, &ports, files.as_ref());
        common.extend_from_slice(settings);
        let kept = graph.iter().map(|it| ("MEMFLEET_GRAPH__URL", it.url()));
        common.extend(kept);
        let mut roles = Vec::new();
        for (name, role, port) in ports.roles() {
            let program = start(place, name, role, port, &common)?;
            roles.push(Role { name, program });
        }
        Ok(Self {
            roles,
            nats,
            postgres,
            graph,
            gateway: at(ports.gateway, files.is_some()),
            authority: files.and_then(|files| files.authority),
            settings: common,
            folder,
        })
    }

    /// One more gateway, and where it listens.
    pub fn another_gateway(&self) -> Result<(Program, String)> {
        let port = free_port()?;
        let (place, settings) = (self.folder.path(), &self.settings);
        let program = start(place, "gateway-2", "gateway", port, settings)?;
        Ok((program, at(port, self.authority.is_some())))
    }

    /// Where callers go.
    pub fn url(&self) -> String {
        self.gateway.clone()
    }

    /// The file with the authority that callers have to believe.
    pub fn authority(&self) -> Option<PathBuf> {
        self.authority.clone()
    }

    /// Where its files lie, certificates among them.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The process of this name.
    pub fn role(&mut self, name: &str) -> &mut Program {
        let found = self.roles.iter_mut().find(|role| role.name == name);
        &mut found.expect("a role of the fleet").program
    }
}

/// Where each process listens.
struct Ports {
    embedder: u16,
    constructors: [u16; 2],
    retrievers: [u16; 2],
    judge: u16,
    refresher: u16,
    consolidator: u16,
    gateway: u16,
}

impl Ports {
    fn free() -> Result<Self> {
        let mut ports = [0; 9];
        for port in &mut ports {
            *port = free_port()?;
        }
        Ok(Self {
            embedder: ports[0],
            constructors: [ports[1], ports[2]],
            retrievers: [ports[3], ports[4]],
            judge: ports[5],
            refresher: ports[6],
            consolidator: ports[7],
            gateway: ports[8],
        })
    }

    /// Names, roles and ports, in the order in which they start.
    fn roles(&self) -> [(&'static str, &'static str, u16); 9] {
        [
            ("embedder", "embedder", self.embedder),
            ("constructor-1", "constructor", self.constructors[0]),
            ("constructor-2", "constructor", self.constructors[1]),
            ("retriever-1", "retriever", self.retrievers[0]),
            ("retriever-2", "retriever", self.retrievers[1]),
            ("judge", "judge", self.judge),
            ("refresher", "refresher", self.refresher),
            ("consolidator", "consolidator", self.consolidator),
            ("gateway", "gateway", self.gateway),
        ]
    }
}

fn at(port: u16, is_encrypted: bool) -> String {
    let scheme = if is_encrypted { "https" } else { "http" };
    format!("{scheme}://{HOST}:{port}")
}

/// The configuration that all roles share.
fn common(
    postgres: &Postgres,
    nats: &Nats,
    ports: &Ports,
    files: Option<&Files>,
) -> Vec<(&'static str, String)> {
    let at = |port: u16| at(port, files.is_some());
    let retrievers = ports.retrievers.map(at).join(",");
    let text = |path: &Path| path.display().to_string();
    let encryption = files.into_iter().flat_map(|files| {
        let own = files.own.iter().flat_map(|(certificate, key)| {
            [
                ("MEMFLEET_TLS__CERTIFICATE", text(certificate)),
                ("MEMFLEET_TLS__KEY", text(key)),
            ]
        });
        let authority = files.authority.iter();
        own.chain(authority.map(|path| ("MEMFLEET_TLS__CLIENT_CA", text(path))))
    });
    let common = [
        ("MEMFLEET_STORE__URL", postgres.url()),
        ("MEMFLEET_QUEUE__URL", nats.url()),
        ("MEMFLEET_PEERS__EMBEDDER", at(ports.embedder)),
        ("MEMFLEET_PEERS__RETRIEVER", retrievers),
        ("MEMFLEET_PEERS__REFRESHER", at(ports.refresher)),
        ("MEMFLEET_INTERNAL__TOKEN", SECRET.to_owned()),
        ("MEMFLEET_AUTH__KEYS", known_keys()),
        ("MEMFLEET_AUTH__BOOTSTRAP_KEY", OPERATOR_KEY.to_owned()),
        ("MEMFLEET_TELEMETRY__METRICS_ADDRESS", "off".to_owned()),
    ];
    common.into_iter().chain(encryption).collect()
}

fn start(
    place: &Path,
    name: &'static str,
    role: &str,
    port: u16,
    common: &[(&'static str, String)],
) -> Result<Program> {
    let address = format!("{HOST}:{port}");
    Program::start(
        place,
        &Command {
            name,
            program: &binary()?,
            arguments: &["run", role, "--listen", &address],
            environment: common,
            ready: READY,
        },
    )
}

/// Makes the tables, as the owner of the database.
fn migrate(postgres: &Postgres) -> Result<()> {
    let migrated = std::process::Command::new(binary()?)
        .arg("migrate")
        .env("MEMFLEET_STORE__OWNER_URL", postgres.url())
        .output()?;
    anyhow::ensure!(
        migrated.status.success(),
        "memfleet migrate: {}",
        String::from_utf8_lossy(&migrated.stderr)
    );
    Ok(())
}
