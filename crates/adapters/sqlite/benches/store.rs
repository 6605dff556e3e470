//! What the store costs and how fast it is, on synthetic turns of LoCoMo length (42 word pieces of 64 components, 25 terms,
//! 200 bytes of text). Prints one line a figure; `TURNS` sets the size, 10,000 by default.

#[path = "synthetic/turns.rs"]
mod turns;

use std::path::Path;
use std::time::{Duration, Instant};

use memfleet_domain::ids::TurnId;
use memfleet_domain::ingestion::Batch;
use memfleet_domain::turn::AcceptedTurn;
use memfleet_ports::conformance::samples::{
    batch, batch_in, home, instant, scope, session, turn, turn_in,
};
use memfleet_ports::erasure::Erasure;
use memfleet_ports::feed::IndexFeed;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::ledger::{IndexedBatch, Ledger, Passage};
use memfleet_ports::queue::{Bounds, IngestQueue};
use memfleet_sqlite::{Options, SqliteStore};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use self::turns::{indexed, measure, told};

#[tokio::main]
async fn main() {
    let turns = std::env::var("TURNS")
        .ok()
        .and_then(|turns| turns.parse().ok())
        .unwrap_or(10_000);
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let path = directory.path().join("memfleet.db");
    let store = SqliteStore::open(&path, Options::default())
        .await
        .expect("open");
    ingest(&store, turns).await;
    store.close().await.expect("close");
    drop(store);
    let bytes = std::fs::metadata(&path).expect("metadata").len();
    println!("disk: {} bytes a turn", bytes / turns as u64);
    let opening = Instant::now();
    let store = SqliteStore::open(&path, Options::default())
        .await
        .expect("open");
    println!("open: {:?}", opening.elapsed());
    reading(&store, turns).await;
    queueing(&store).await;
    forgetting(&store, turns).await;
    erasing(&store, directory.path()).await;
    for length in [600, 100_000] {
        forgetting_in_a_session(&store, length).await;
    }
    forgetting_a_session(&store, 100_000).await;
}

/// Forgets all that is left of such a session, while others publish.
async fn forgetting_a_session(store: &SqliteStore, length: usize) {
    let place = scope("acme", &format!("long {length}"));
    let removing = tokio::spawn({
        let store = store.clone();
        async move {
            let filter = TurnFilter {
                sessions: vec![session("s1")],
                ..TurnFilter::default()
            };
            let start = Instant::now();
            let erased = store.remove(&place, &filter).await.expect("remove");
            (start.elapsed(), erased.turns.len())
        }
    });
    let mut times = Vec::new();
    while !removing.is_finished() {
        let name = format!("beside {}", times.len());
        let told = batch(&name, vec![turn(&name, "It was said.")]);
        let start = Instant::now();
        let published = store.publish(&told, instant(0), Bounds::NONE).await;
        published.expect("publish");
        times.push(start.elapsed());
    }
    let (took, turns) = removing.await.expect("a forget");
    println!("remove a session of {turns} turns: {took:?}");
    spread("publish meanwhile", times);
}

/// Number of the turn that a run forgets, in a session of some length.
type TurnOfRun = fn(run: usize, length: usize) -> usize;

/// Forgets the first turn, the last one and one between them of a session of so many turns, 20
/// times each.
async fn forgetting_in_a_session(store: &SqliteStore, length: usize) {
    let place = scope("acme", &format!("long {length}"));
    let said = |number: usize| AcceptedTurn {
        event_time: Some(instant(number as i64)),
        ..turn_in(&place, "s1", &number.to_string(), "It was said.")
    };
    for first in (0..length).step_by(1_000) {
        let end = length.min(first + 1_000);
        let batch = batch_in(&place, &first.to_string(), (first..end).map(said).collect());
        let told = bare(batch, first as u64 + 1);
        store.commit(vec![told]).await.expect("commit");
    }
    let ways: [(&str, TurnOfRun); 3] = [
        ("first", |run, _| run),
        ("last", |run, length| length - 1 - run),
        ("middle", |run, length| length / 2 + run),
    ];
    for (which, number) in ways {
        let mut times = Vec::new();
        for run in 0..20 {
            let filter = TurnFilter {
                turns: vec![said(number(run, length)).id],
                ..TurnFilter::default()
            };
            let start = Instant::now();
            let erased = store.remove(&place, &filter).await.expect("remove");
            times.push(start.elapsed());
            assert_eq!(erased.turns.len(), 1);
        }
        spread(
            &format!("remove the {which} turn of a session of {length}"),
            times,
        );
    }
}

/// A batch whose turns have one passage each, without terms and vectors.
fn bare(batch: Batch, acceptance: u64) -> IndexedBatch {
    let passage = |turn: &AcceptedTurn| Passage {
        start: 0,
        end: turn.content.text.len() as u32,
        terms: Vec::new(),
        features: vec![0.5; 12],
        vectors: None,
        embedding_space: None,
    };
    IndexedBatch {
        passages: batch.turns.iter().map(|turn| vec![passage(turn)]).collect(),
        batch,
        acceptance,
        embedding_space: None,
        language: None,
    }
}

async fn ingest(store: &SqliteStore, turns: usize) {
    let mut random = StdRng::seed_from_u64(1);
    let mut spent = Duration::ZERO;
    for first in (0..turns).step_by(64) {
        let batch = indexed(&mut random, first, 64.min(turns - first));
        let start = Instant::now();
        store.commit(vec![batch]).await.expect("commit");
        spent += start.elapsed();
    }
    println!(
        "bulk commit: {:.0} turns/s",
        turns as f64 / spent.as_secs_f64()
    );
}

async fn reading(store: &SqliteStore, turns: usize) {
    let mut random = StdRng::seed_from_u64(2);
    measure("head", 1_000, async || {
        store.head(&home()).await.expect("head");
    })
    .await;
    let mut scattered = |clusters: usize, width: u32| -> Vec<u32> {
        (0..clusters)
            .flat_map(|_| {
                let first = random.random_range(0..turns as u32 - width);
                first..first + width
            })
            .collect()
    };
    for (name, clusters, width) in [("scattered", 1_000, 1), ("in clusters of 5", 200, 5)] {
        let passages = scattered(clusters, width);
        measure(
            &format!("token vectors of 1,000 passages {name}"),
            50,
            async || {
                store
                    .token_vectors(&home(), None, &passages)
                    .await
                    .expect("token vectors");
            },
        )
        .await;
    }
    let start = Instant::now();
    let (mut reached, mut count, mut more) = (0, 0, true);
    while more {
        let page = store
            .changes_after(&home(), reached, 2_000)
            .await
            .expect("changes");
        count += page.changes.len();
        (reached, more) = (page.reached, page.more);
    }
    println!("feed from 0: {count} changes in {:?}", start.elapsed());
    let ids: Vec<TurnId> = (0..20)
        .map(|number| told(&mut StdRng::seed_from_u64(3), number * 7).0.id)
        .collect();
    measure("20 turns by id", 200, async || {
        assert_eq!(store.turns(&home(), &ids).await.expect("turns").len(), 20);
    })
    .await;
    println!("resident: {} KiB", resident());
}

async fn queueing(store: &SqliteStore) {
    let mut random = StdRng::seed_from_u64(4);
    let mut next = 10_000_000;
    let mut single = || {
        next += 1;
        indexed(&mut random, next, 1)
    };
    let batches: Vec<_> = (0..4_096).map(|_| single()).collect();
    let start = Instant::now();
    futures::future::join_all((0..64).map(|caller| {
        let batches = &batches;
        async move {
            for batch in batches.iter().skip(caller).step_by(64) {
                store
                    .publish(&batch.batch, instant(0), Bounds::NONE)
                    .await
                    .expect("publish");
            }
        }
    }))
    .await;
    println!(
        "publish, 64 callers: {:.0}/s",
        4_096.0 / start.elapsed().as_secs_f64()
    );
    let taken = store.take(u32::MAX).await.expect("take");
    let taken: Vec<_> = taken.iter().map(|delivery| delivery.acceptance).collect();
    store.acknowledge(&taken).await.expect("acknowledge");
    let mut batches: Vec<_> = (0..300).map(|_| single()).collect();
    let batches = std::cell::RefCell::new(&mut batches);
    measure(
        "publish, take, commit, acknowledge one turn",
        300,
        async || {
            let told = batches.borrow_mut().pop().expect("one a run");
            store
                .publish(&told.batch, instant(0), Bounds::NONE)
                .await
                .expect("publish");
            let acceptance = store.take(64).await.expect("take")[0].acceptance;
            store
                .commit(vec![IndexedBatch { acceptance, ..told }])
                .await
                .expect("commit");
            store.acknowledge(&[acceptance]).await.expect("acknowledge");
        },
    )
    .await;
}

/// Forgets turns in a row, `FORGETS` (100 by default), while others remember.
async fn forgetting(store: &SqliteStore, turns: usize) {
    let forgets = std::env::var("FORGETS");
    let forgets = forgets.ok().and_then(|forgets| forgets.parse().ok());
    let forgets: usize = forgets.unwrap_or(100);
    let mut random = StdRng::seed_from_u64(6);
    let mut next = 20_000_000;
    let mut remember = async || {
        next += 1;
        let told = indexed(&mut random, next, 1);
        let start = Instant::now();
        let published = store.publish(&told.batch, instant(0), Bounds::NONE).await;
        let acceptance = published.expect("publish").acceptance;
        let told = IndexedBatch { acceptance, ..told };
        store.commit(vec![told]).await.expect("commit");
        let acknowledged = store.acknowledge(&[acceptance]).await;
        acknowledged.expect("acknowledge");
        start.elapsed()
    };
    let mut alone = Vec::new();
    for _ in 0..300 {
        alone.push(remember().await);
    }
    let gone: Vec<_> = (0..forgets)
        .map(|number| {
            told(
                &mut StdRng::seed_from_u64(3),
                (1_000 + number * turns / (forgets + 1)) % turns,
            )
            .0
            .id
        })
        .collect();
    let forgetting = tokio::spawn({
        let store = store.clone();
        async move {
            let (mut removals, mut scrubs) = (Vec::new(), Vec::new());
            for id in gone {
                let filter = TurnFilter {
                    turns: vec![id],
                    ..TurnFilter::default()
                };
                let start = Instant::now();
                store.remove(&home(), &filter).await.expect("remove");
                removals.push(start.elapsed());
                let start = Instant::now();
                store.scrub().await.expect("scrub");
                scrubs.push(start.elapsed());
            }
            (removals, scrubs)
        }
    });
    let mut beside = Vec::new();
    while !forgetting.is_finished() {
        beside.push(remember().await);
    }
    let (removals, scrubs) = forgetting.await.expect("forgets");
    let first = scrubs.first().copied().unwrap_or_default();
    println!("first scrub of the file: {first:?}");
    spread("remember a turn", alone);
    spread("remember a turn while others forget", beside);
    spread("remove a turn (writers wait)", removals);
    spread("scrub after it (writers go on)", scrubs);
}

fn spread(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: usize| times[(times.len() - 1) * share / 100];
    println!(
        "{what}: p50 {:?}, p95 {:?}, most {:?}",
        at(50),
        at(95),
        at(100)
    );
}

async fn erasing(store: &SqliteStore, directory: &Path) {
    let filter = TurnFilter {
        turns: vec![told(&mut StdRng::seed_from_u64(5), 500).0.id],
        ..TurnFilter::default()
    };
    let start = Instant::now();
    store.erase(&home(), &filter).await.expect("erase");
    println!("erase of one turn: {:?}", start.elapsed());
    let start = Instant::now();
    store
        .backup(&directory.join("copy.db"))
        .await
        .expect("backup");
    println!("backup: {:?}", start.elapsed());
    println!("resident: {} KiB", resident());
}

/// Resident memory of this process in KiB, where the system says so.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .unwrap_or(0)
}
