//! A node in the test's process: every role, a clock that stands where it is put, and a constructor that works when told to.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use memfleet_assembly::Tokenizers;
use memfleet_constructor::{Constructor, ModelSwitcher, Postponed};
use memfleet_domain::ids::{
    BatchId, ExternalId, IdempotencyKey, SessionId, SpaceId, Speaker, TenantId,
};
use memfleet_domain::ingestion::Receipt;
use memfleet_domain::turn::{Content, Metadata, Role, Trust};
use memfleet_domain::{Clock, Fault, Timestamp};
use memfleet_gateway::access::{Access, Sources};
use memfleet_gateway::settings::SettingsCache;
use memfleet_gateway::{Gateway, Options};
use memfleet_ports::conformance::samples::instant;
use memfleet_ports::context::Context;
use memfleet_ports::erasure::Erasure;
use memfleet_ports::events::Events;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::health::Health;
use memfleet_ports::memory::{Memory, NewTurn, RecallRequest, RememberRequest};
use memfleet_ports::retriever::Query;
use memfleet_ports::testing::{SentenceReader, WordEmbedder};
use memfleet_refresher::LocalRefresher;
use memfleet_retrieval::{ModelCalibrations, Weights};
use memfleet_retriever::LocalRetriever;
use memfleet_sqlite::SqliteStore;
use memfleet_workers::Indexer;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A clock that a test sets.
pub struct HandClock(Mutex<Timestamp>);

impl HandClock {
    /// Puts the clock at a second of the samples' time.
    pub fn set(&self, second: i64) {
        *self.0.lock().unwrap() = instant(second);
    }
}

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

/// The roles of a node.
pub struct Node {
    pub gateway: Gateway,
    pub embedder: Arc<WordEmbedder>,
    pub reader: Arc<SentenceReader>,
    pub clock: Arc<HandClock>,
    pub erasure: Arc<dyn Erasure>,
    pub store: Arc<SqliteStore>,
    pub refresher: LocalRefresher,
    constructor: Constructor,
    _directory: tempfile::TempDir,
}

impl Node {
    /// A node with an empty store, on which nothing runs by itself.
    pub async fn new() -> Self {
        Self::with(Options::default()).await
    }

    /// The same with other bounds.
    pub async fn with(options: Options) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memory.db");
        let store = SqliteStore::open(path, memfleet_sqlite::Options::default()).await;
        let store = Arc::new(store.unwrap());
        let embedder = Arc::new(WordEmbedder::default());
        let reader = Arc::new(SentenceReader::default());
        let clock = Arc::new(HandClock(Mutex::new(instant(0))));
        let events = Events::default();
        let constructor = Constructor {
            queue: store.clone(),
            ledger: store.clone(),
            spaces: store.clone(),
            embedder: embedder.clone(),
            feed: store.clone(),
            switches: store.clone(),
            events: events.clone(),
            clock: clock.clone(),
            options: memfleet_constructor::Options::default(),
        };
        let refresher = LocalRefresher {
            erasure: store.clone(),
            queue: store.clone(),
            spaces: store.clone(),
            knowledge: store.clone(),
            feed: store.clone(),
            indexer: Indexer {
                spaces: store.clone(),
                embedder: embedder.clone(),
            },
            events: events.clone(),
            clock: clock.clone(),
        };
        let access = Access::new(Sources {
            keys: store.clone(),
            tenants: store.clone(),
            log: Some(store.clone()),
            configured: Vec::new(),
            tokens: None,
            clock: clock.clone(),
        });
        let gateway = Gateway {
            queue: store.clone(),
            ledger: store.clone(),
            spaces: store.clone(),
            knowledge: store.clone(),
            graph: Some(store.clone()),
            retriever: Arc::new(retriever(&store, &embedder)),
            refresher: Arc::new(refresher.clone()),
            author: None,
            usage: store.clone(),
            policy: Arc::default(),
            settings: Arc::new(SettingsCache::new(store.clone())),
            exchanges: store.clone(),
            injections: store.clone(),
            tokenizers: Tokenizers::default(),
            routing: Arc::default(),
            keys: Arc::default(),
            rejections: Arc::default(),
            shares: Arc::default(),
            embedder: embedder.clone(),
            reader: reader.clone(),
            switches: store.clone(),
            events,
            health: Health::default(),
            access: Arc::new(access),
            clock: clock.clone(),
            options,
        };
        Self {
            gateway,
            embedder,
            reader,
            clock,
            erasure: store.clone(),
            store,
            refresher,
            constructor,
            _directory: directory,
        }
    }

    /// Applies what is queued now.
    pub async fn settle(&self) {
        while self.constructor.round().await.unwrap() {}
    }

    /// Brings vectors that are missing; how many turns got some.
    pub async fn backfill(&self) -> usize {
        let mut postponed = Postponed::default();
        self.constructor
            .backfill_once(&mut postponed)
            .await
            .unwrap()
    }

    /// Who carries a change of the model on, as a process that just began.
    pub fn switcher(&self) -> ModelSwitcher {
        ModelSwitcher {
            switches: self.store.clone(),
            feed: self.store.clone(),
            ledger: self.store.clone(),
            spaces: self.store.clone(),
            embedder: self.embedder.clone(),
            second_model: None,
        }
    }

    /// Applies what one round takes.
    pub async fn round(&self) {
        self.constructor.round().await.unwrap();
    }

    /// Lets the constructor work by itself until the guard is dropped.
    pub fn start_constructor(&self) -> DropGuard {
        let shutdown = CancellationToken::new();
        let (constructor, stop) = (self.constructor.clone(), shutdown.clone());
        tokio::spawn(async move { constructor.run(stop).await });
        shutdown.drop_guard()
    }

    /// Remembers turns in a space of the tenant `acme`.
    pub async fn remember(&self, name: &str, turns: Vec<NewTurn>) -> Result<Receipt, Fault> {
        self.gateway.remember(&acme(), request(name, turns)).await
    }

    /// Remembers turns and applies them.
    pub async fn told(&self, name: &str, turns: Vec<NewTurn>) -> Receipt {
        let receipt = self.remember(name, turns).await.unwrap();
        self.settle().await;
        receipt
    }

    /// What a search finds, as texts, the best first.
    pub async fn found(&self, name: &str, text: &str) -> Result<Vec<String>, Fault> {
        let found = self
            .gateway
            .recall(&acme(), recall(name, text, &[]))
            .await?;
        let texts = found
            .hits
            .into_iter()
            .map(|hit| hit.turn.accepted.content.text);
        Ok(texts.collect())
    }
}

fn retriever(store: &Arc<SqliteStore>, embedder: &Arc<WordEmbedder>) -> LocalRetriever {
    let options = memfleet_retriever::Options {
        index_cache: 64 << 20,
        token_cache: 16 << 20,
        answer_bytes: memfleet_retriever::MAX_ANSWER_BYTES,
        calibrations: ModelCalibrations::of_every_model(Weights::shipped()),
    };
    LocalRetriever::new(
        store.clone(),
        None,
        store.clone(),
        store.clone(),
        embedder.clone(),
        options,
    )
}

/// A call of the tenant `acme` with a minute to go.
pub fn acme() -> Context {
    call_of("acme", Duration::from_mins(1))
}

/// A call of the tenant `acme` that has hardly any time.
pub fn brief() -> Context {
    call_of("acme", Duration::from_millis(50))
}

/// A call of a tenant.
pub fn call_of(tenant: &str, budget: Duration) -> Context {
    Context::new(TenantId::new(tenant).unwrap(), budget)
}

/// The space of this name.
pub fn space(name: &str) -> SpaceId {
    SpaceId::new(name).unwrap()
}

/// Something that Ada said on Monday.
pub fn said(text: &str) -> NewTurn {
    NewTurn {
        session: SessionId::new("monday").unwrap(),
        external_id: None,
        speaker: Speaker::new("Ada").unwrap(),
        role: Role::User,
        content: Content {
            text: text.to_owned(),
            media: Vec::new(),
        },
        event_time: None,
        metadata: Metadata::new(),
        trust: Trust::User,
        replaces: None,
    }
}

/// The same under an id of the caller's.
pub fn named(external: &str, text: &str) -> NewTurn {
    NewTurn {
        external_id: Some(ExternalId::new(external).unwrap()),
        ..said(text)
    }
}

/// A request without an idempotency key.
pub fn request(name: &str, turns: Vec<NewTurn>) -> RememberRequest {
    RememberRequest {
        space: space(name),
        turns,
        idempotency_key: None,
    }
}

/// A request with an idempotency key.
pub fn keyed(name: &str, key: &str, turns: Vec<NewTurn>) -> RememberRequest {
    RememberRequest {
        idempotency_key: Some(IdempotencyKey::new(key).unwrap()),
        ..request(name, turns)
    }
}

/// A search that waits for writes.
pub fn recall(name: &str, text: &str, wait_for: &[BatchId]) -> RecallRequest {
    let query = Query {
        text: text.to_owned(),
        spaces: vec![space(name)],
        filter: TurnFilter::default(),
        k: 10,
        neighbours: 0,
        now: None,
        session: None,
        intent: None,
        explain: false,
        quality: None,
        vectors: None,
    };
    RecallRequest {
        wait_for: wait_for.to_vec(),
        ..RecallRequest::from(query)
    }
}
