//! Where a follower goes, on a real store.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use memfleet_domain::ids::BatchId;
use memfleet_domain::time::FixedClock;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::conformance::samples::{batch_in, indexed, instant, scope, turn_in};
use memfleet_ports::events::{Event, Events};
use memfleet_ports::feed::IndexFeed;
use memfleet_ports::knowledge::{Knowledge, Progress, Stage, Work};
use memfleet_ports::ledger::Ledger;
use memfleet_sqlite::SqliteStore;
use memfleet_workers::{Agent, Follower, Outcome, worked_through};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Notes where it was, and that it was there; fails in the space `bad`, and never ends in
/// `endless`.
struct Visitor {
    store: Arc<SqliteStore>,
    visits: watch::Sender<BTreeMap<String, u32>>,
}

#[async_trait]
impl Agent for Visitor {
    async fn work(&self, scope: &Scope, reached: u64) -> Result<Outcome, Fault> {
        self.visits.send_modify(|visits| {
            *visits.entry(scope.space.to_string()).or_default() += 1;
        });
        if scope.space.as_str().starts_with("bad") {
            return Err(Fault::internal("a sample"));
        }
        assert!(scope.space.as_str() != "panics", "a sample of a panic");
        if scope.space.as_str() == "endless" {
            std::future::pending::<()>().await;
        }
        let progress = Some(Progress {
            stage: Stage::Judge,
            from: reached,
            to: self.store.head(scope).await?,
        });
        let work = Work {
            progress,
            ..Work::default()
        };
        self.store.apply(scope, work).await?;
        Ok(Outcome::Done)
    }
}

struct Bench {
    store: Arc<SqliteStore>,
    events: Events,
    follower: Follower,
    visitor: Arc<Visitor>,
    acceptances: Mutex<u64>,
    _directory: tempfile::TempDir,
}

/// A follower at work, until it is told to stop.
struct Running {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

impl Bench {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memory.db");
        let store = SqliteStore::open(path, memfleet_sqlite::Options::default()).await;
        let store = Arc::new(store.unwrap());
        let events = Events::default();
        let follower = Follower {
            knowledge: store.clone(),
            stage: Stage::Judge,
            events: events.clone(),
            clock: Arc::new(FixedClock(instant(0))),
        };
        let visits = watch::channel(BTreeMap::new()).0;
        let visitor = Arc::new(Visitor {
            store: store.clone(),
            visits,
        });
        Self {
            store,
            events,
            follower,
            visitor,
            acceptances: Mutex::default(),
            _directory: directory,
        }
    }

    async fn store(&self, space: &str) -> Scope {
        self.store_of("acme", space).await
    }

    async fn store_of(&self, tenant: &str, space: &str) -> Scope {
        let scope = scope(tenant, space);
        let number = {
            let mut acceptances = self.acceptances.lock().unwrap();
            *acceptances += 1;
            *acceptances
        };
        let name = number.to_string();
        let batch = batch_in(&scope, &name, vec![turn_in(&scope, "s", &name, "text")]);
        self.store
            .commit(vec![indexed(batch, number)])
            .await
            .unwrap();
        scope
    }

    /// The follower at work.
    fn run(&self) -> Running {
        let stop = CancellationToken::new();
        let (follower, visitor, stopping) =
            (self.follower.clone(), self.visitor.clone(), stop.clone());
        let task = tokio::spawn(async move { follower.run(&*visitor, stopping).await });
        Running { stop, task }
    }

    fn visits(&self) -> BTreeMap<String, u32> {
        self.visitor.visits.borrow().clone()
    }

    async fn until(&self, space: &str, visits: u32) {
        let mut seen = self.visitor.visits.subscribe();
        let seen = seen.wait_for(|seen| seen.get(space).is_some_and(|times| *times >= visits));
        seen.await.unwrap();
    }
}

#[tokio::test]
async fn every_space_that_is_behind_is_visited_once() {
    let bench = Bench::new().await;
    for space in ["one", "two", "bad"] {
        bench.store(space).await;
    }
    bench.follower.sweep(&*bench.visitor).await;
    let once = |names: &[&str]| {
        names
            .iter()
            .map(|name| ((*name).to_owned(), 1))
            .collect::<BTreeMap<_, _>>()
    };
    assert_eq!(bench.visits(), once(&["bad", "one", "two"]));
    // One that failed is behind still.
    bench.follower.sweep(&*bench.visitor).await;
    assert_eq!(bench.visits()["bad"], 2);
    assert_eq!(bench.visits()["one"], 1);
}

#[tokio::test]
async fn one_that_fails_keeps_nobody_from_the_others() {
    let bench = Bench::new().await;
    bench.store("bad").await;
    let names: Vec<String> = (0..12).map(|number| format!("space-{number}")).collect();
    for name in &names {
        bench.store(name).await;
    }
    bench.follower.sweep(&*bench.visitor).await;
    assert_eq!(bench.visits().len(), names.len() + 1);
    let behind = bench.store.pending(Stage::Judge, 100).await.unwrap();
    assert_eq!(behind, [scope("acme", "bad")]);
}

#[tokio::test]
async fn panic_of_one_space_keeps_nobody_from_the_others_and_gives_its_claim_back() {
    let bench = Bench::new().await;
    for space in ["panics", "one", "two"] {
        bench.store(space).await;
    }
    bench.follower.sweep(&*bench.visitor).await;
    assert_eq!(bench.visits().len(), 3);
    let behind = bench.store.pending(Stage::Judge, 100).await.unwrap();
    assert_eq!(behind, [scope("acme", "panics")]);
    let (now, until) = (instant(0), instant(10));
    let claim = bench
        .store
        .claim(&behind[0], Stage::Judge, now, until)
        .await;
    assert!(claim.unwrap().is_some(), "the claim is free");
}

#[tokio::test]
async fn a_rebuild_begins_when_it_is_announced_also_right_behind_other_news() {
    let mut bench = Bench::new().await;
    bench.follower.stage = Stage::Rebuild;
    let scope = bench.store("ada").await;
    let running = bench.run();
    let announce = || {
        let scope = scope.clone();
        bench.events.announce(Event::Derived { scope });
    };
    announce();
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    assert!(bench.visits().is_empty(), "there is nothing to rebuild");
    bench.store.begin_rebuild(&scope).await.unwrap();
    announce();
    let visited = bench.until("ada", 1);
    let in_time = tokio::time::timeout(std::time::Duration::from_secs(4), visited).await;
    assert!(
        in_time.is_ok(),
        "it is not left for the next look at all spaces"
    );
    running.stop().await;
}

#[tokio::test]
async fn work_that_is_cut_off_by_a_stop_gives_its_claim_back() {
    let bench = Bench::new().await;
    let endless = bench.store("endless").await;
    let claim = || {
        let (now, until) = (instant(0), instant(10));
        bench.store.claim(&endless, Stage::Judge, now, until)
    };
    let stop = CancellationToken::new();
    let working = bench.follower.run(&*bench.visitor, stop.clone());
    let stopping = async {
        bench.until("endless", 1).await;
        assert_eq!(claim().await.unwrap(), None);
        stop.cancel();
    };
    tokio::join!(working, stopping);
    assert!(claim().await.unwrap().is_some(), "the claim is free");
}

#[tokio::test]
async fn what_is_announced_is_visited_at_once_and_what_was_missed_is_looked_for() {
    let bench = Bench::new().await;
    bench.store("first").await;
    let running = bench.run();
    bench.until("first", 1).await;
    let scope = bench.store("second").await;
    bench.events.announce(Event::Settled {
        scope,
        batch: BatchId::from_bytes([1; 16]),
    });
    bench.until("second", 1).await;
    bench.store("third").await;
    bench.events.announce(Event::Missed);
    bench.until("third", 1).await;
    running.stop().await;
}

#[tokio::test]
async fn a_graph_hears_at_once_of_what_is_forgotten() {
    let mut bench = Bench::new().await;
    bench.follower.stage = Stage::Relate;
    bench.store("first").await;
    let running = bench.run();
    bench.until("first", 1).await;
    let scope = bench.store("second").await;
    bench.events.announce(Event::Forgotten { scope });
    bench.until("second", 1).await;
    running.stop().await;
}

#[tokio::test]
async fn a_space_that_another_worker_has_is_left_to_it() {
    let bench = Bench::new().await;
    let scope = bench.store("one").await;
    let claim = bench
        .store
        .claim(&scope, Stage::Judge, instant(0), instant(60));
    assert!(claim.await.unwrap().is_some());
    bench.follower.sweep(&*bench.visitor).await;
    assert_eq!(bench.visits(), BTreeMap::new());
    let released = bench.store.release(&scope, Stage::Judge, instant(60));
    released.await.unwrap();
    bench.follower.sweep(&*bench.visitor).await;
    assert_eq!(bench.visits()["one"], 1);
}

/// Has more to do for ever in the space `busy`, as where another worker is always faster.
struct Busy(Visitor);

#[async_trait]
impl Agent for Busy {
    async fn work(&self, scope: &Scope, reached: u64) -> Result<Outcome, Fault> {
        if scope.space.as_str() == "busy" {
            return Ok(Outcome::More);
        }
        self.0.work(scope, reached).await
    }
}

#[tokio::test]
async fn a_space_without_an_end_leaves_the_others_their_turn() {
    let bench = Bench::new().await;
    for space in ["busy", "one"] {
        bench.store(space).await;
    }
    let busy = Busy(Visitor {
        store: bench.store.clone(),
        visits: watch::channel(BTreeMap::new()).0,
    });
    assert!(bench.follower.sweep(&busy).await, "there is more to do");
    let visits = busy.0.visits.borrow().clone();
    assert_eq!(visits, BTreeMap::from([("one".to_owned(), 1)]));
}

#[tokio::test]
async fn spaces_that_fail_starve_none_however_many_they_are() {
    let bench = Bench::new().await;
    for number in 0..300 {
        let bad = format!("bad-{number}");
        // Further behind than all others.
        bench.store(&bad).await;
        bench.store(&bad).await;
    }
    bench.store("good").await;
    bench.store_of("beta", "theirs").await;
    let running = bench.run();
    bench.until("theirs", 1).await;
    let before = bench.visits();
    let failed = before.keys().filter(|name| name.starts_with("bad"));
    assert!(failed.count() <= 64, "another tenant has its turn at once");
    bench.until("good", 1).await;
    // What is announced of one that fails again and again is left to later.
    let mut visits = bench.visits();
    for _ in 0..10 {
        let scope = scope("acme", "bad-0");
        bench.events.announce(Event::Derived { scope });
        let name = format!("good-{}", visits.len());
        let scope = bench.store(&name).await;
        bench.events.announce(Event::Derived { scope });
        bench.until(&name, 1).await;
        visits = bench.visits();
    }
    assert!(visits["bad-0"] <= 3, "{}", visits["bad-0"]);
    running.stop().await;
}

#[tokio::test]
async fn a_stage_that_follows_another_sees_no_more_than_that_worked_through() {
    let bench = Bench::new().await;
    let scope = bench.store("one").await;
    for _ in 0..4 {
        bench.store("one").await;
    }
    let store = &*bench.store;
    let head = store.head(&scope).await.unwrap();
    let claim = store.claim(&scope, Stage::Judge, instant(0), instant(60));
    assert_eq!(claim.await.unwrap(), Some(0));
    let mut led = 0;
    for to in [0, 2, 3, head] {
        let work = Work {
            progress: Some(Progress {
                stage: Stage::Judge,
                from: led,
                to,
            }),
            ..Work::default()
        };
        store.apply(&scope, work).await.unwrap();
        led = to;
        let mut reached = 0;
        loop {
            let changes = worked_through(store, store, &scope, Stage::Judge, reached, 8);
            let changes = changes.await.unwrap();
            assert!(changes.reached <= led);
            if changes.reached == reached {
                assert_eq!(changes.changes, []);
                break;
            }
            reached = changes.reached;
        }
        assert_eq!(reached, led);
    }
}
