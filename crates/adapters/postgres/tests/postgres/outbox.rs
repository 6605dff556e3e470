//! What happened is told, at least once and in order, whatever ends in between.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use memfleet_domain::Scope;
use memfleet_domain::derivation::Status;
use memfleet_ports::conformance::knowledge::{closing, conflict, deriving, fact};
use memfleet_ports::conformance::samples::{batch_in, indexed, instant, scope, turn_in};
use memfleet_ports::erasure::Erasure;
use memfleet_ports::feed::IndexFeed;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge::{Knowledge, Work};
use memfleet_ports::ledger::Ledger;
use memfleet_ports::outbox::{Audience, Backlog, Happening, Kind, Outbox};
use memfleet_ports::store::{Result, StoreError};
use memfleet_ports::testing::NothingWaits;
use memfleet_postgres::{PostgresErasure, PostgresStore};
use tokio::sync::Notify;

use crate::database::Database;

/// Writes down what it is told.
#[derive(Default)]
struct Listener {
    heard: Mutex<Vec<Happening>>,
    is_away: AtomicBool,
    /// After so many it does not answer any more.
    patience: Option<usize>,
    stuck: Notify,
    calls: AtomicUsize,
}

impl Listener {
    fn heard(&self) -> Vec<Happening> {
        self.heard.lock().expect("nobody panicked").clone()
    }
}

#[async_trait]
impl Audience for Listener {
    async fn tell(&self, happening: &Happening) -> Result<()> {
        if self.is_away.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("nobody listens".into()));
        }
        let calls = self.calls.fetch_add(1, Ordering::SeqCst);
        if self.patience.is_some_and(|patience| calls >= patience) {
            self.stuck.notify_one();
            std::future::pending::<()>().await;
        }
        let mut heard = self.heard.lock().expect("nobody panicked");
        heard.push(happening.clone());
        Ok(())
    }
}

async fn tell_of(store: &PostgresStore, scope: &Scope, names: &[&str]) {
    for (index, name) in names.iter().enumerate() {
        let told = batch_in(scope, name, vec![turn_in(scope, "s", name, name)]);
        let told = vec![indexed(told, index as u64 + 1)];
        store.commit(told).await.expect("commit");
    }
}

/// Every step of the space in its order, none left out.
async fn are_complete(store: &PostgresStore, scope: &Scope, heard: &[Happening]) {
    let mut at = 0;
    for happening in heard.iter().filter(|happening| happening.scope == *scope) {
        assert_eq!(happening.after, at, "{heard:?}");
        at = happening.change;
    }
    assert_eq!(Ok(at), store.head(scope).await);
}

#[tokio::test]
async fn what_happened_to_each_space_is_told_once_and_in_order() {
    let database = Database::migrated().await;
    let store = database.store().await;
    let (ada, ben) = (scope("acme", "ada"), scope("globex", "ben"));
    tell_of(&store, &ada, &["a", "b", "a"]).await;
    tell_of(&store, &ben, &["c"]).await;
    let erasure = PostgresErasure::new(store.clone(), Arc::new(NothingWaits));
    let everything = TurnFilter::default();
    erasure.remove(&ada, &everything).await.expect("remove");

    let listener = Listener::default();
    assert_eq!(store.relay(&listener, 100).await, Ok(4));
    let heard = listener.heard();
    are_complete(&store, &ada, &heard).await;
    are_complete(&store, &ben, &heard).await;
    let of_ada = heard.iter().filter(|happening| happening.scope == ada);
    let kinds: Vec<_> = of_ada.map(|happening| happening.kind).collect();
    assert_eq!(kinds, [Kind::Stored, Kind::Stored, Kind::Forgotten]);
    assert_eq!(store.relay(&listener, 100).await, Ok(0));
    assert_eq!(store.backlog().await, Ok(Backlog::default()));
}

#[tokio::test]
async fn what_agents_did_is_told_kind_by_kind_and_only_where_it_is_news() {
    let database = Database::migrated().await;
    let store = database.store().await;
    let ada = scope("acme", "ada");
    tell_of(&store, &ada, &["a"]).await;
    let turn = turn_in(&ada, "s", "a", "a");
    let [rome, oslo] = ["Rome", "Oslo"].map(|value| fact(&turn, "Ada", value, instant(1)));
    let conflict = conflict(&rome, &oslo);
    let found = Work {
        rewrites: vec![deriving(&[&rome, &oslo])],
        found: vec![conflict.clone()],
        ..Work::default()
    };
    let settled = Work {
        rewrites: vec![closing(&rome, &oslo, 9)],
        settled: vec![(conflict.id, Status::Settled)],
        ..Work::default()
    };
    for work in [&found, &found, &settled, &settled] {
        store.apply(&ada, work.clone()).await.expect("apply");
    }
    let listener = Listener::default();
    assert_eq!(store.relay(&listener, 100).await, Ok(5));
    let heard = listener.heard();
    are_complete(&store, &ada, &heard).await;
    let kinds: Vec<_> = heard.iter().map(|happening| happening.kind).collect();
    assert_eq!(
        kinds,
        [
            Kind::Stored,
            Kind::Derived,
            Kind::Conflict,
            Kind::Derived,
            Kind::Refreshed
        ]
    );
}

#[tokio::test]
async fn while_nobody_listens_it_waits_and_is_seen() {
    let database = Database::migrated().await;
    let store = database.store().await;
    let ada = scope("acme", "ada");
    let listener = Listener::default();
    listener.is_away.store(true, Ordering::SeqCst);
    tell_of(&store, &ada, &["a", "b"]).await;
    let refused = store.relay(&listener, 100).await;
    assert!(
        matches!(refused, Err(StoreError::Unavailable(_))),
        "{refused:?}"
    );
    let backlog = store.backlog().await.expect("backlog");
    assert_eq!(backlog.events, 2);
    assert!(backlog.oldest.is_some());
    listener.is_away.store(false, Ordering::SeqCst);
    assert_eq!(store.relay(&listener, 1).await, Ok(1));
    assert_eq!(store.relay(&listener, 100).await, Ok(1));
    are_complete(&store, &ada, &listener.heard()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_is_cut_off_leaves_what_it_told_to_be_told_again() {
    let database = Database::migrated().await;
    let store = database.store().await;
    let ada = scope("acme", "ada");
    tell_of(&store, &ada, &["a", "b", "c"]).await;
    let stuck = Arc::new(Listener {
        patience: Some(1),
        ..Listener::default()
    });
    let (telling, audience) = (store.clone(), stuck.clone());
    let relay = tokio::spawn(async move { telling.relay(&*audience, 100).await });
    stuck.stuck.notified().await;
    let other = Listener::default();
    assert_eq!(store.relay(&other, 100).await, Ok(0), "one tells at a time");
    relay.abort();
    assert!(relay.await.expect_err("cut off").is_cancelled());

    // Its transaction ends in the background.
    while store.relay(&other, 100).await.expect("relay") == 0 {}
    let (before, after) = (stuck.heard(), other.heard());
    assert_eq!(before, after[..1], "the same once more");
    are_complete(&store, &ada, &after).await;
}
