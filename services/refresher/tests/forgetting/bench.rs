//! A store, a refresher over it, and a conversation to forget.

use std::sync::Arc;
use std::time::Duration;

use memfleet_domain::ids::{SpaceId, TenantId};
use memfleet_domain::time::FixedClock;
use memfleet_domain::turn::{AcceptedTurn, Role};
use memfleet_domain::{Fault, Scope, Timestamp};
use memfleet_ports::conformance::samples::{
    batch_in, indexed, instant, scope, session, speaker, turn_in,
};
use memfleet_ports::context::Context;
use memfleet_ports::events::Events;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::ledger::Ledger;
use memfleet_ports::queue::{Depth, IngestQueue};
use memfleet_ports::refresher::{ForgetReceipt, ForgetRequest, Refresher};
use memfleet_ports::testing::WordEmbedder;
use memfleet_refresher::LocalRefresher;
use memfleet_sqlite::SqliteStore;
use memfleet_workers::Indexer;

/// When it is, for retention periods: day 100 of the samples' time.
pub const TODAY: i64 = 100;

/// A refresher and what it works with.
pub struct Bench {
    pub store: Arc<SqliteStore>,
    pub refresher: LocalRefresher,
    _directory: tempfile::TempDir,
}

pub async fn bench() -> Bench {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    let store = SqliteStore::open(path, memfleet_sqlite::Options::default()).await;
    let store = Arc::new(store.unwrap());
    let refresher = LocalRefresher {
        erasure: store.clone(),
        queue: store.clone(),
        spaces: store.clone(),
        knowledge: store.clone(),
        feed: store.clone(),
        indexer: Indexer {
            spaces: store.clone(),
            embedder: Arc::new(WordEmbedder::default()),
        },
        events: Events::default(),
        clock: Arc::new(FixedClock(day(TODAY))),
    };
    Bench {
        store,
        refresher,
        _directory: directory,
    }
}

/// The n-th day of the samples' time.
pub fn day(n: i64) -> Timestamp {
    instant(n * 86_400)
}

/// The space of the tenant `acme` that most tests use.
pub fn home() -> Scope {
    scope("acme", "ada")
}

/// Six turns in sessions s0 to s2, two each, by Ada and Ben in turn, a hundred seconds apart.
pub fn conversation(scope: &Scope) -> Vec<AcceptedTurn> {
    let turn = |n: usize| AcceptedTurn {
        speaker: speaker(["Ada", "Ben"][n % 2]),
        role: [Role::User, Role::Assistant][n % 2],
        event_time: Some(instant(n as i64 * 100)),
        ..turn_in(
            scope,
            &format!("s{}", n / 2),
            &n.to_string(),
            &format!("turn number {n} of them all"),
        )
    };
    (0..6).map(turn).collect()
}

impl Bench {
    /// How full the queue is with what any tenant wrote.
    pub async fn depth(&self) -> Depth {
        let depths = self.store.depth(None).await;
        depths.unwrap().all
    }

    /// Stores a batch that was accepted at a position.
    pub async fn commit(&self, scope: &Scope, acceptance: u64, turns: Vec<AcceptedTurn>) {
        let batch = batch_in(scope, &acceptance.to_string(), turns);
        self.store
            .commit(vec![indexed(batch, acceptance)])
            .await
            .unwrap();
    }

    /// The external ids of what is left in a space, replaced turns too.
    pub async fn left(&self, scope: &Scope) -> Vec<String> {
        let all = TurnFilter {
            include_replaced: true,
            ..TurnFilter::default()
        };
        let page = Ledger::list(&*self.store, scope, &all, 1_000, None).await;
        page.unwrap()
            .items
            .into_iter()
            .filter_map(|turn| turn.accepted.external_id)
            .map(String::from)
            .collect()
    }

    /// Forgets as the tenant `acme`, with a minute to go.
    pub async fn forget(&self, request: &ForgetRequest) -> Result<ForgetReceipt, Fault> {
        self.refresher
            .forget(&acme(Duration::from_mins(1)), request)
            .await
    }
}

/// A call of the tenant `acme`.
pub fn acme(budget: Duration) -> Context {
    Context::new(TenantId::new("acme").unwrap(), budget)
}

/// A request to forget what a filter means.
pub fn matching(filter: TurnFilter) -> ForgetRequest {
    ForgetRequest {
        space: SpaceId::new("ada").unwrap(),
        filter,
        everything: false,
        dry_run: false,
    }
}

/// A request to forget a session.
pub fn of_session(name: &str) -> ForgetRequest {
    matching(TurnFilter {
        sessions: vec![session(name)],
        ..TurnFilter::default()
    })
}

/// A request to forget the whole space.
pub fn everything() -> ForgetRequest {
    ForgetRequest {
        everything: true,
        ..matching(TurnFilter::default())
    }
}
