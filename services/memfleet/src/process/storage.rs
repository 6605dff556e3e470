//! Where memory is kept and work waits, opened by the scheme of its URL.

use std::sync::Arc;
use std::time::Duration;

use memfleet_gateway::access::Access;
use memfleet_nats::NatsQueue;
use memfleet_neo4j::Neo4jGraph;
use memfleet_ports::audit::AuditLog;
use memfleet_ports::candidates::Candidates;
use memfleet_ports::erasure::Erasure;
use memfleet_ports::events::Events;
use memfleet_ports::exchanges::Exchanges;
use memfleet_ports::feed::IndexFeed;
use memfleet_ports::graph::Graph;
use memfleet_ports::injections::Injections;
use memfleet_ports::keys::KeyRing;
use memfleet_ports::knowledge::Knowledge;
use memfleet_ports::ledger::Ledger;
use memfleet_ports::model_switch::ModelSwitches;
use memfleet_ports::outbox::{Audience, Outbox};
use memfleet_ports::queue::IngestQueue;
use memfleet_ports::settings::Settings;
use memfleet_ports::spaces::SpaceCatalog;
use memfleet_ports::store::StoreError;
use memfleet_ports::tenants::TenantCatalog;
use memfleet_ports::usage::UsageLedger;
use memfleet_postgres::{PostgresErasure, PostgresStore};
use memfleet_qdrant::{Mirror, MirroredCandidates, MirroredErasure};
use memfleet_runtime::BoxError;
use memfleet_runtime::lifecycle::{Lifecycle, Policy};
use memfleet_runtime::telemetry::Readiness;
use memfleet_sqlite::SqliteStore;

use crate::config::{Config, Queue};

/// Pause between two tries to reach a server that is not there yet.
const PAUSE: Duration = Duration::from_secs(1);

/// What a batch may take in the queue beyond the request it came in: JSON has quotes and names.
const OVERHEAD: usize = 2;

/// The storage ports of a process.
pub struct Storage {
    /// The turns.
    pub ledger: Arc<dyn Ledger>,
    /// What indexes follow.
    pub feed: Arc<dyn IndexFeed>,
    /// What is derived.
    pub knowledge: Arc<dyn Knowledge>,
    /// The semantic graph, where one is kept.
    pub graph: Option<Arc<dyn Graph>>,
    /// What language models cost.
    pub usage: Arc<dyn UsageLedger>,
    /// What finds candidates in the store itself; a node holds every space that it searches.
    pub candidates: Option<Arc<dyn Candidates>>,
    /// The spaces.
    pub spaces: Arc<dyn SpaceCatalog>,
    /// What removes.
    pub erasure: Arc<dyn Erasure>,
    /// What waits.
    pub queue: Arc<dyn IngestQueue>,
    /// What happened and who is told, where there are other processes.
    pub outbox: Option<(Arc<dyn Outbox>, Arc<dyn Audience>)>,
    /// The API keys.
    pub keys: Arc<dyn KeyRing>,
    /// The tenants.
    pub tenants: Arc<dyn TenantCatalog>,
    /// The audit log.
    pub log: Arc<dyn AuditLog>,
    /// What tenants configure.
    pub settings: Arc<dyn Settings>,
    /// What gateways know of exchanges under way.
    pub exchanges: Arc<dyn Exchanges>,
    /// What entered which prompt.
    pub injections: Arc<dyn Injections>,
    /// Changes of the embedding model.
    pub switches: Arc<dyn ModelSwitches>,
    engine: Engine,
}

/// What is behind the ports.
#[derive(Clone)]
enum Engine {
    /// One file.
    Sqlite(Arc<SqliteStore>),
    /// Servers that other processes use too.
    Servers {
        store: PostgresStore,
        queue: NatsQueue,
    },
}

impl Storage {
    /// Opens what `store` and `queue` name. Servers that do not answer yet are waited for.
    pub async fn open(config: &Config, readiness: &Readiness) -> Result<Self, BoxError> {
        if config.store.is_shared() {
            return Self::on_servers(config, readiness).await;
        }
        let path = config.store.path().ok_or("store.url names no file")?;
        let store = SqliteStore::open(&path, memfleet_sqlite::Options::default()).await?;
        let path = std::path::absolute(&path).unwrap_or(path);
        tracing::info!(path = %path.display(), "opened the database");
        let store = Arc::new(store);
        Ok(Self {
            ledger: store.clone(),
            feed: store.clone(),
            knowledge: store.clone(),
            graph: Some(store.clone()),
            usage: store.clone(),
            candidates: None,
            spaces: store.clone(),
            erasure: store.clone(),
            queue: store.clone(),
            outbox: None,
            keys: store.clone(),
            tenants: store.clone(),
            log: store.clone(),
            settings: store.clone(),
            exchanges: store.clone(),
            injections: store.clone(),
            switches: store.clone(),
            engine: Engine::Sqlite(store),
        })
    }

    async fn on_servers(config: &Config, readiness: &Readiness) -> Result<Self, BoxError> {
        if let Some(owner) = config
            .store
            .owner_url
            .as_ref()
            .filter(|_| config.store.migrate)
        {
            patiently(|| memfleet_postgres::migrate(owner.expose()), readiness).await?;
        }
        let options = memfleet_postgres::Options {
            connections: config.store.max_connections,
            ..memfleet_postgres::Options::default()
        };
        let url = config.store.url.expose();
        let connect = || PostgresStore::connect(url, options.clone());
        let store = patiently(connect, readiness).await?;
        let largest_batch = config.server.max_request_size.as_usize() * OVERHEAD;
        let queue = NatsQueue::connect(memfleet_nats::Options {
            accepted: Some(Arc::new(store.clone())),
            ..options_of(&config.queue, largest_batch)
        })
        .await?;
        let (candidates, erasure) = mirrored(config, &store, &queue)?;
        let engine = Engine::Servers {
            store: store.clone(),
            queue: queue.clone(),
        };
        let (store, queue) = (Arc::new(store), Arc::new(queue));
        Ok(Self {
            ledger: store.clone(),
            feed: store.clone(),
            knowledge: store.clone(),
            graph: graph(config)?,
            usage: store.clone(),
            candidates: Some(candidates),
            spaces: store.clone(),
            erasure,
            queue: queue.clone(),
            outbox: Some((store.clone(), queue)),
            keys: store.clone(),
            tenants: store.clone(),
            log: store.clone(),
            settings: store.clone(),
            exchanges: store.clone(),
            injections: store.clone(),
            switches: store,
            engine,
        })
    }

    /// Whether other processes use it too.
    pub fn is_shared(&self) -> bool {
        matches!(self.engine, Engine::Servers { .. })
    }

    /// Keeps it open until the rest of the process has ended, and carries `events` to and from the other processes of a fleet. What
    /// `access` has to write down then is written last.
    pub fn spawn(&self, events: &Events, access: Option<Arc<Access>>, process: &mut Lifecycle) {
        if let Engine::Servers { queue, .. } = &self.engine {
            let (queue, events) = (queue.clone(), events.clone());
            process.spawn("events", Policy::Essential, |stop| async move {
                // Cut off: what is not heard is asked for.
                stop.run_until_cancelled(queue.bridge(&events)).await;
                Ok::<_, BoxError>(())
            });
        }
        let engine = self.engine.clone();
        process.spawn_support("store", Policy::Essential, |stop| async move {
            if let Some(access) = access {
                access.run(stop.clone()).await;
            }
            stop.cancelled().await;
            engine.close().await
        });
    }
}

impl Engine {
    /// Finishes what was begun.
    async fn close(self) -> Result<(), BoxError> {
        match self {
            Self::Sqlite(store) => store.close().await?,
            Self::Servers { store, queue } => {
                queue.close().await;
                store.close().await;
            }
        }
        Ok(())
    }
}

/// What finds candidates and what removes.
type Mirrored = (Arc<dyn Candidates>, Arc<dyn Erasure>);

/// The two, with Qdrant beside the database where it is configured.
fn mirrored(
    config: &Config,
    store: &PostgresStore,
    queue: &NatsQueue,
) -> Result<Mirrored, StoreError> {
    let candidates = Arc::new(store.clone());
    let erasure = PostgresErasure::new(store.clone(), Arc::new(queue.clone()));
    let Some(options) = config.vectors.mirror() else {
        return Ok((candidates, Arc::new(erasure)));
    };
    let mirror = Arc::new(Mirror::new(candidates.clone(), &options)?);
    let candidates = MirroredCandidates::new(candidates, mirror.clone(), options.compared);
    let erasure = MirroredErasure::new(Arc::new(erasure), mirror);
    Ok((Arc::new(candidates), Arc::new(erasure)))
}

/// The graph in the server that is configured.
fn graph(config: &Config) -> Result<Option<Arc<dyn Graph>>, StoreError> {
    let Some(options) = config.graph.server() else {
        return Ok(None);
    };
    Ok(Some(Arc::new(Neo4jGraph::new(&options)?)))
}

fn options_of(config: &Queue, largest_batch: usize) -> memfleet_nats::Options {
    let auth = match &config.credentials {
        Some(path) => memfleet_nats::Auth::Credentials(path.clone()),
        None => memfleet_nats::Auth::None,
    };
    memfleet_nats::Options {
        servers: config
            .url
            .expose()
            .split(',')
            .map(|url| url.trim().to_owned())
            .collect(),
        auth,
        replicas: config.replicas.into(),
        largest_batch,
        ..memfleet_nats::Options::default()
    }
}

/// Tries until the server answers; whoever stops the process ends this too.
async fn patiently<T, F>(
    mut attempt: impl FnMut() -> F,
    readiness: &Readiness,
) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut attempts = 0_u64;
    loop {
        match attempt().await {
            Err(StoreError::Unavailable(cause)) => {
                attempts += 1;
                readiness.waits_for(match cause.ends_with(memfleet_postgres::MIGRATE) {
                    true => "`memfleet migrate`",
                    false => "the database",
                });
                // Said less and less often: it may take until somebody migrates.
                if attempts.is_power_of_two() {
                    tracing::warn!(cause, attempts, "waiting for the database");
                }
                tokio::time::sleep(PAUSE).await;
            }
            outcome => return outcome,
        }
    }
}
