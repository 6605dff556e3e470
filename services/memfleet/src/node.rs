//! A node: every role in this process over one SQLite file, put together from the small configuration. It adds no behaviour.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use memfleet_constructor::Constructor;
use memfleet_domain::Clock;
use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_domain::time::SystemClock;
use memfleet_embedder::{LocalEmbedder, SentenceModel};
use memfleet_encoder::projection::Projection;
use memfleet_gateway::Gateway;
use memfleet_models::ModelDirectory;
use memfleet_ports::embedder::Embedder;
use memfleet_ports::events::Events;
use memfleet_ports::health::Health;
use memfleet_ports::retriever::Retriever;
use memfleet_refresher::LocalRefresher;
use memfleet_retrieval::Weights;
use memfleet_retriever::LocalRetriever;
use memfleet_runtime::BoxError;
use memfleet_runtime::lifecycle::{Lifecycle, Policy, Signals, StopReason};
use memfleet_sqlite::SqliteStore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::{NodeConfig, Retrieval};

/// The roles of a node.
pub struct Node {
    /// The public API.
    pub gateway: Arc<Gateway>,
    store: Arc<SqliteStore>,
    constructor: Constructor,
    refresher: Arc<LocalRefresher>,
    retriever: Arc<LocalRetriever>,
    events: Events,
}

impl Node {
    /// Opens the store and the model, and connects the roles. Nothing runs yet.
    pub async fn open(config: &NodeConfig, model: &ModelDirectory) -> Result<Self, BoxError> {
        let path = config.store.path().ok_or("store.url names no file")?;
        let store = SqliteStore::open(&path, memfleet_sqlite::Options::default()).await?;
        let embedder = embedder(config, model)?;
        Ok(Self::connect(config, Arc::new(store), Arc::new(embedder)))
    }

    /// Every role with what it asks of the others.
    fn connect(config: &NodeConfig, store: Arc<SqliteStore>, embedder: Arc<dyn Embedder>) -> Self {
        let weights = Weights {
            candidates: config.retrieval.candidates,
            ..Weights::shipped()
        };
        let (events, clock): (_, Arc<dyn Clock>) = (Events::default(), Arc::new(SystemClock));
        let constructor = Constructor {
            queue: store.clone(),
            ledger: store.clone(),
            spaces: store.clone(),
            embedder: embedder.clone(),
            events: events.clone(),
            clock: clock.clone(),
            options: memfleet_constructor::Options {
                turns_per_round: config.ingestion.turns_per_round,
                ..memfleet_constructor::Options::default()
            },
        };
        let refresher = Arc::new(LocalRefresher {
            erasure: store.clone(),
            queue: store.clone(),
            spaces: store.clone(),
            events: events.clone(),
            clock: clock.clone(),
        });
        let retriever = Arc::new(retriever(
            &store,
            embedder.clone(),
            &config.retrieval,
            weights,
        ));
        let gateway = Arc::new(Gateway {
            queue: store.clone(),
            ledger: store.clone(),
            spaces: store.clone(),
            retriever: retriever.clone(),
            refresher: refresher.clone(),
            embedder,
            events: events.clone(),
            health: Health::default(),
            clock,
            options: memfleet_gateway::Options {
                max_queued_turns: config.ingestion.max_queued_turns,
                max_queued_bytes: config.ingestion.max_queued_size.as_u64(),
            },
        });
        Self {
            gateway,
            store,
            constructor,
            refresher,
            retriever,
            events,
        }
    }

    /// Another retriever over the same memory, for measuring other weights.
    pub fn retriever(&self, weights: Weights) -> Arc<dyn Retriever> {
        Arc::new(retriever(
            &self.store,
            self.gateway.embedder.clone(),
            &Retrieval::default(),
            weights,
        ))
    }

    /// Starts the workers.
    pub fn spawn(&self, process: &mut Lifecycle) {
        let constructor = self.constructor.clone();
        process.spawn("constructor", Policy::Essential, |stop| {
            finish(async move { constructor.run(stop).await })
        });
        let constructor = self.constructor.clone();
        self.supervise(process, "backfill", move |stop| {
            let constructor = constructor.clone();
            async move { constructor.run_backfill(stop).await }
        });
        let constructor = self.constructor.clone();
        self.supervise(process, "gauges", move |stop| {
            let constructor = constructor.clone();
            async move { constructor.run_gauges(stop).await }
        });
        let refresher = self.refresher.clone();
        self.supervise(process, "retention", move |stop| {
            let refresher = refresher.clone();
            async move { refresher.run_retention(stop).await }
        });
        let refresher = self.refresher.clone();
        self.supervise(process, "scrub", move |stop| {
            let refresher = refresher.clone();
            async move { refresher.run_scrubbing(stop).await }
        });
        let (retriever, events) = (self.retriever.clone(), self.events.clone());
        process.spawn("index", Policy::Essential, |stop| {
            finish(async move { retriever.follow(&events, stop).await })
        });
        let store = self.store.clone();
        process.spawn_support("store", Policy::Essential, |stop| async move {
            stop.cancelled().await;
            store.close().await
        });
    }

    /// Starts work that goes on whatever happens, and has the node's status say how it is.
    fn supervise<F>(
        &self,
        process: &mut Lifecycle,
        name: &'static str,
        work: impl Fn(CancellationToken) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let health = self.gateway.health.clone();
        let works = move |works: bool| {
            // The cause is for the log: it may quote what a tenant wrote.
            let trouble = "it failed and is started again; the log of the node says why";
            health.report(name, (!works).then(|| trouble.to_owned()));
        };
        process.supervise(name, works, work);
    }

    /// Runs the workers in the background of a command; they end with the answer's [`Background::stop`].
    pub fn run_in_background(&self) -> Background {
        let mut process = Lifecycle::new(&memfleet_runtime::lifecycle::Options::default());
        self.spawn(&mut process);
        let stop = process.stop_token();
        let task = tokio::spawn(async move {
            process.run(Unsignalled).await;
        });
        Background { stop, task }
    }
}

/// The embedder role on the configured model.
fn embedder(config: &NodeConfig, model: &ModelDirectory) -> Result<LocalEmbedder, BoxError> {
    let threads = NonZeroUsize::new(config.model.threads)
        .map_or_else(std::thread::available_parallelism, Ok)?;
    let projection = Projection::shipped();
    let manifest = model.manifest();
    let space = EmbeddingSpace {
        model: manifest.name.clone(),
        revision: manifest.revision.clone(),
        recipe: manifest.recipe.clone(),
        projection: projection.fingerprint(),
    };
    let model = SentenceModel {
        encoder: model.load(threads)?,
        projection,
    };
    Ok(LocalEmbedder::start(space, model, config.model.queue)?)
}

fn retriever(
    store: &Arc<SqliteStore>,
    embedder: Arc<dyn Embedder>,
    config: &Retrieval,
    weights: Weights,
) -> LocalRetriever {
    let options = memfleet_retriever::Options {
        index_cache: config.index_cache.as_usize(),
        token_cache: config.token_cache.as_usize(),
        weights,
    };
    LocalRetriever::new(
        store.clone(),
        store.clone(),
        store.clone(),
        embedder,
        options,
    )
}

/// The workers of a node inside a command.
pub struct Background {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Background {
    /// Stops the workers and waits for them.
    pub async fn stop(self) {
        self.stop.cancel();
        // A panic in a worker was logged by the lifecycle.
        let _ended = self.task.await;
    }
}

/// A command handles signals by ending.
struct Unsignalled;

impl Signals for Unsignalled {
    async fn next(&mut self) -> StopReason {
        std::future::pending().await
    }
}

async fn finish(work: impl Future<Output = ()>) -> Result<(), BoxError> {
    work.await;
    Ok(())
}

/// A node's configuration on a store of its own, for a command that needs one for a while.
pub fn temporary(directory: &Path) -> NodeConfig {
    let mut config = NodeConfig::default();
    config.store.url = format!("sqlite:{}", directory.join("memory.db").display());
    config
}
