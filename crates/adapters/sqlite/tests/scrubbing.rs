//! A scrub that is due.

use std::path::Path;
use std::time::Duration;

use memfleet_ports::conformance::samples::{batch, home, indexed, instant, turn};
use memfleet_ports::erasure::Erasure;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::ledger::Ledger;
use memfleet_ports::queue::{Bounds, IngestQueue};
use memfleet_sqlite::{Options, SqliteStore};
use sqlx::{Connection, SqliteConnection};

async fn raw(path: &Path) -> SqliteConnection {
    let url = format!("sqlite:{}", path.display());
    SqliteConnection::connect(&url).await.expect("connect")
}

async fn is_due(path: &Path) -> bool {
    let due = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM unscrubbed)");
    let due = due.fetch_one(&mut raw(path).await).await;
    due.expect("unscrubbed")
}

#[tokio::test]
async fn a_scrub_that_cannot_be_done_keeps_nobody_from_opening_and_is_done_later() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let path = directory.path().join("memfleet.db");
    let opened = SqliteStore::open(&path, Options::default()).await;
    let store = opened.expect("open");
    let told = indexed(batch("k", vec![turn("a", "x")]), 1);
    store.commit(vec![told]).await.expect("commit");
    let removed = store.remove(&home(), &TurnFilter::default()).await;
    assert_eq!(removed.expect("remove").turns.len(), 1);
    // The node dies here; another process reads the file, and so the write-ahead log cannot be emptied.
    let crashed = directory.path().join("crashed.db");
    for end in ["", "-wal"] {
        let from = format!("{}{end}", path.display());
        std::fs::copy(from, format!("{}{end}", crashed.display())).expect("copy");
    }
    let mut reader = raw(&crashed).await;
    let mut reading = reader.begin().await.expect("begin");
    let turns = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM turns");
    assert_eq!(turns.fetch_one(&mut *reading).await.expect("count"), 0);
    let survivor = SqliteStore::open(&crashed, Options::default()).await;
    let survivor = survivor.expect("a scrub can wait");
    assert!(is_due(&crashed).await);
    reading.rollback().await.expect("rollback");
    survivor.scrub().await.expect("scrub");
    assert!(!is_due(&crashed).await);

    store.scrub().await.expect("scrub");
    assert!(!is_due(&path).await);
}

/// Writers go on while a reader keeps the log, and a removal that comes while a scrub runs has one of its own.
#[tokio::test]
async fn a_scrub_that_waits_keeps_nobody_from_writing_or_removing() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let path = directory.path().join("memfleet.db");
    let store = SqliteStore::open(&path, Options::default()).await;
    let store = store.expect("open");
    let turns = ["a", "b", "c"].map(|name| turn(name, "said"));
    let told = indexed(batch("k", turns.to_vec()), 1);
    store.commit(vec![told]).await.expect("commit");
    let forget = async |number: usize| {
        let filter = TurnFilter {
            turns: vec![turns[number].id],
            ..TurnFilter::default()
        };
        store.remove(&home(), &filter).await.expect("remove");
    };
    forget(0).await;
    let mut reader = raw(&path).await;
    let mut reading = reader.begin().await.expect("begin");
    let count = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM turns");
    assert_eq!(count.fetch_one(&mut *reading).await.expect("count"), 2);
    let scrubbing = tokio::spawn({
        let store = store.clone();
        async move { store.scrub().await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let late = indexed(batch("later", vec![turn("d", "said")]), 2);
    store.commit(vec![late]).await.expect("commit");
    forget(1).await;
    reading.rollback().await.expect("rollback");
    scrubbing.await.expect("joins").expect("scrub");
    assert!(is_due(&path).await);
    store.scrub().await.expect("scrub");
    assert!(!is_due(&path).await);
}

#[tokio::test]
async fn forgotten_text_that_comes_in_later_makes_a_scrub_due() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let path = directory.path().join("memfleet.db");
    let opened = SqliteStore::open(&path, Options::default()).await;
    let store = opened.expect("open");
    let turns = vec![turn("a", "x"), turn("b", "y")];
    let told = indexed(batch("k", turns.clone()), 1);
    store.commit(vec![told]).await.expect("commit");
    let forgotten = TurnFilter {
        turns: vec![turns[0].id],
        ..TurnFilter::default()
    };
    store.remove(&home(), &forgotten).await.expect("remove");
    for (turn, expected) in [(&turns[1], false), (&turns[0], true)] {
        // As a scrub leaves it.
        sqlx::query("DELETE FROM unscrubbed")
            .execute(&mut raw(&path).await)
            .await
            .expect("delete");
        let late = batch("read before the forget", vec![turn.clone()]);
        let published = store.publish(&late, instant(0), Bounds::NONE).await;
        let acceptance = published.expect("publish").acceptance;
        let committed = store.commit(vec![indexed(late, acceptance)]).await;
        committed.expect("commit");
        store.acknowledge(&[acceptance]).await.expect("acknowledge");
        assert_eq!(is_due(&path).await, expected, "{turn:?}");
    }
}
