//! A store, a constructor over it, and batches to store.

use std::sync::Arc;

use memfleet_constructor::{Constructor, Options};
use memfleet_domain::Scope;
use memfleet_domain::ids::{BatchId, ExternalId, SessionId, SpaceId, Speaker, TenantId, TurnId};
use memfleet_domain::ingestion::Batch;
use memfleet_domain::time::{Clock, SystemClock};
use memfleet_domain::turn::{AcceptedTurn, Content, Metadata, Role, Trust};
use memfleet_ports::events::Events;
use memfleet_ports::feed::{Change, IndexFeed};
use memfleet_ports::queue::{Bounds, Depth, IngestQueue};
use memfleet_ports::testing::WordEmbedder;
use memfleet_sqlite::SqliteStore;

pub struct Bench {
    pub store: Arc<SqliteStore>,
    pub embedder: Arc<WordEmbedder>,
    pub constructor: Constructor,
    _directory: tempfile::TempDir,
}

pub async fn bench() -> Bench {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(
        directory.path().join("memory.db"),
        memfleet_sqlite::Options::default(),
    )
    .await;
    let store = Arc::new(store.unwrap());
    let embedder = Arc::new(WordEmbedder::default());
    let constructor = Constructor {
        queue: store.clone(),
        ledger: store.clone(),
        spaces: store.clone(),
        embedder: embedder.clone(),
        feed: store.clone(),
        switches: store.clone(),
        events: Events::default(),
        clock: Arc::new(SystemClock),
        options: Options::default(),
    };
    Bench {
        store,
        embedder,
        constructor,
        _directory: directory,
    }
}

pub fn scope() -> Scope {
    space("ada")
}

pub fn space(name: &str) -> Scope {
    Scope {
        tenant: TenantId::new("acme").unwrap(),
        space: SpaceId::new(name).unwrap(),
    }
}

pub fn batch(texts: &[&str]) -> Batch {
    batch_in(&scope(), texts)
}

pub fn batch_in(scope: &Scope, texts: &[&str]) -> Batch {
    let session = SessionId::new("monday").unwrap();
    let turn = |text: &&str| {
        let external = ExternalId::new(*text).unwrap();
        AcceptedTurn {
            id: TurnId::of_external(scope, &session, &external),
            session: session.clone(),
            external_id: Some(external),
            speaker: Speaker::new("Ada").unwrap(),
            role: Role::User,
            content: Content {
                text: (*text).to_owned(),
                media: Vec::new(),
            },
            event_time: None,
            recorded_at: SystemClock.now(),
            metadata: Metadata::new(),
            trust: Trust::User,
            replaces: None,
            echoes: Vec::new(),
            place: None,
        }
    };
    let turns = texts.iter().map(turn).collect::<Vec<_>>();
    let ids = turns.iter().map(|turn| turn.id).collect::<Vec<_>>();
    Batch {
        id: BatchId::of_turns(&ids),
        scope: scope.clone(),
        turns,
    }
}

impl Bench {
    /// How full the queue is.
    pub async fn depth(&self) -> Depth {
        let depths = self.store.depth(None).await;
        depths.unwrap().all
    }

    pub async fn publish(&self, batch: &Batch) {
        self.store
            .publish(batch, SystemClock.now(), Bounds::NONE)
            .await
            .unwrap();
    }

    pub async fn vectors_in_feed(&self) -> Vec<bool> {
        let changes = self
            .store
            .changes_after(&scope(), 0, 100)
            .await
            .unwrap()
            .changes;
        let has_vectors = |change: &Change| match change {
            Change::Stored(turn) => turn
                .passages
                .iter()
                .all(|passage| passage.sentence.is_some()),
            _ => false,
        };
        changes.iter().map(has_vectors).collect()
    }
}
