//! A scrub that is due, and where it puts its temporary file. One test scrubs: the folder is one for the whole process.

use std::path::Path;

use memfleet_domain::turn::AcceptedTurn;
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
async fn a_scrub_that_cannot_be_done_keeps_nobody_from_opening_and_is_done_later_beside_the_database()
 {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let folder = directory.path().join("it's here");
    std::fs::create_dir(&folder).expect("a folder");
    let path = folder.join("memfleet.db");
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
    let used: String = sqlx::query_scalar("PRAGMA temp_store_directory")
        .fetch_one(&mut raw(&path).await)
        .await
        .expect("the folder");
    assert_eq!(Path::new(&used), folder);
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
    let imported = AcceptedTurn {
        place: Some(0),
        ..turns[0].clone()
    };
    for (turn, expected) in [(&turns[1], false), (&imported, true)] {
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
