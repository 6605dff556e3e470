//! What survives a crash, and what is refused rather than read wrongly.

use std::path::{Path, PathBuf};
use std::task::Poll;

use memfleet_domain::turn::AcceptedTurn;
use memfleet_ports::conformance::samples::{batch, home, indexed, instant, turn};
use memfleet_ports::erasure::Erasure;
use memfleet_ports::feed::IndexFeed;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge::{Knowledge, Stage};
use memfleet_ports::ledger::{IndexedBatch, Ledger};
use memfleet_ports::queue::{Bounds, IngestQueue};
use memfleet_ports::store::StoreError;
use memfleet_sqlite::{BackupError, Options, SqliteStore};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, Executor};
use tempfile::TempDir;

fn place() -> (TempDir, PathBuf) {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("memfleet.db");
    (directory, path)
}

async fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, Options::default())
        .await
        .expect("open")
}

async fn refusal(path: &Path) -> StoreError {
    SqliteStore::open(path, Options::default())
        .await
        .map(drop)
        .expect_err("it is refused")
}

fn turns(name: &str, count: usize) -> Vec<AcceptedTurn> {
    let text = "a turn of some length, so that a page is soon full of them ".repeat(4);
    (0..count)
        .map(|n| turn(&format!("{name} {n}"), &text))
        .collect()
}

fn told(name: &str, count: usize, acceptance: u64) -> Vec<IndexedBatch> {
    vec![indexed(batch(name, turns(name, count)), acceptance)]
}

async fn stored(store: &SqliteStore) -> usize {
    let (mut count, mut after) = (0, None);
    loop {
        let page = Ledger::list(
            store,
            &home(),
            &TurnFilter::default(),
            1_000,
            after.as_ref(),
        )
        .await
        .expect("list");
        count += page.items.len();
        after = page.next;
        if after.is_none() {
            return count;
        }
    }
}

/// The files as a dead process would leave them.
fn copy_files(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("a directory") {
        let file = entry.expect("an entry").path();
        if file.extension().is_none_or(|extension| extension != "lock") {
            std::fs::copy(&file, to.join(file.file_name().expect("a file"))).expect("copy");
        }
    }
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_crash() {
    let (directory, path) = place();
    let store = open(&path).await;
    store.commit(told("k", 100, 1)).await.expect("commit");
    store
        .publish(&batch("waiting", turns("w", 3)), instant(0), Bounds::NONE)
        .await
        .expect("publish");
    let (crashed, _) = place();
    copy_files(directory.path(), crashed.path());
    let survivor = open(&crashed.path().join("memfleet.db")).await;
    assert_eq!(stored(&survivor).await, 100);
    assert_eq!(
        survivor.take(10).await.expect("take")[0].batch.turns.len(),
        3
    );
}

#[tokio::test]
async fn a_commit_that_is_cut_short_leaves_nothing_or_all() {
    let (_directory, path) = place();
    let store = open(&path).await;
    for polls in 0..200 {
        let mut commit = store.commit(told(&format!("k{polls}"), 16, polls));
        for _ in 0..polls {
            if let Poll::Ready(committed) = futures::poll!(&mut commit) {
                committed.expect("commit");
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    store
        .commit(told("last", 16, 999))
        .await
        .expect("the next writer is not stuck");
    let mut whole = 1;
    for polls in 0..200 {
        let id = batch(&format!("k{polls}"), vec![]).id;
        if let Some(status) = store.batch(&home(), id).await.expect("batch") {
            assert_eq!(status.turns.len(), 16);
            whole += 1;
        }
    }
    assert_eq!(stored(&store).await, whole * 16);
}

#[tokio::test]
async fn what_was_taken_is_handed_out_again_after_a_restart_and_its_attempts_count() {
    let (_directory, path) = place();
    let store = open(&path).await;
    let first = store
        .publish(&batch("k1", turns("a", 1)), instant(0), Bounds::NONE)
        .await
        .expect("publish")
        .acceptance;
    assert_eq!(store.take(10).await.expect("take").len(), 1);
    drop(store);
    let store = reopened(&path).await;
    let again = store.take(10).await.expect("take");
    assert_eq!((again[0].acceptance, again[0].attempt), (first, 2));
    store.acknowledge(&[first]).await.expect("acknowledge");
    store.close().await.expect("close");
    drop(store);
    let store = reopened(&path).await;
    let second = store
        .publish(&batch("k2", turns("b", 1)), instant(0), Bounds::NONE)
        .await
        .expect("publish")
        .acceptance;
    assert!(second > first, "numbers never repeat");
}

/// The lock is let go when the last clone is gone, which the publisher's task may see a moment later.
async fn reopened(path: &Path) -> SqliteStore {
    loop {
        match SqliteStore::open(path, Options::default()).await {
            Err(StoreError::Unavailable(_)) => tokio::task::yield_now().await,
            other => return other.expect("open"),
        }
    }
}

#[tokio::test]
async fn a_space_that_three_processes_had_claimed_when_they_ended_is_left_alone_for_a_while() {
    let (_directory, path) = place();
    let store = open(&path).await;
    store.commit(told("k", 1, 1)).await.expect("commit");
    drop(store);
    for is_free in [true, true, true, false] {
        let store = reopened(&path).await;
        let claimed = store
            .claim(&home(), Stage::Derive, instant(0), instant(60))
            .await;
        assert_eq!(claimed.expect("an answer").is_some(), is_free);
    }
    let store = reopened(&path).await;
    let later = store
        .claim(&home(), Stage::Derive, instant(120), instant(180))
        .await;
    assert!(later.expect("an answer").is_some(), "after a pause");
}

#[tokio::test]
async fn what_a_process_had_claimed_is_free_when_the_file_is_opened_again() {
    let (_directory, path) = place();
    let store = open(&path).await;
    store.commit(told("k", 1, 1)).await.expect("commit");
    let (soon, late) = (instant(1), instant(1_000));
    let claimed = store.claim(&home(), Stage::Derive, soon, late).await;
    assert!(claimed.expect("an answer").is_some());
    drop(store);
    let store = reopened(&path).await;
    let claimed = store.claim(&home(), Stage::Derive, soon, late).await;
    assert!(claimed.expect("an answer").is_some());
}

#[tokio::test]
async fn closing_moves_everything_into_one_file() {
    let (directory, path) = place();
    let store = open(&path).await;
    store.commit(told("k", 100, 1)).await.expect("commit");
    store.close().await.expect("close");
    assert!(matches!(
        store.head(&home()).await,
        Err(StoreError::Unavailable(_))
    ));
    let wal = directory.path().join("memfleet.db-wal");
    assert!(std::fs::metadata(wal).map_or(0, |wal| wal.len()) == 0);
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let (_directory, path) = place();
    open(&path).await.close().await.expect("close");
    let url = format!("sqlite:{}", path.display());
    let mut connection = <sqlx::SqliteConnection as sqlx::Connection>::connect(&url)
        .await
        .expect("connect");
    sqlx::query(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (999, 'from the future', 1, x'00', 0)",
    )
    .execute(&mut connection)
    .await
    .expect("insert");
    match refusal(&path).await {
        StoreError::Newer { found: 999, known } => assert!(known < 999),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_file_of_something_else_is_damaged_and_named() {
    let (_directory, path) = place();
    std::fs::write(&path, "this is a letter and not a database".repeat(1_000)).expect("write");
    match refusal(&path).await {
        StoreError::Damaged(message) => assert!(message.contains("memfleet.db"), "{message}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_truncated_file_is_damaged() {
    let (_directory, path) = place();
    let store = open(&path).await;
    store.commit(told("k", 200, 1)).await.expect("commit");
    store.close().await.expect("close");
    drop(store);
    let file = std::fs::File::options()
        .write(true)
        .open(&path)
        .expect("open the file");
    file.set_len(5 * 16_384).expect("truncate");
    assert!(matches!(refusal(&path).await, StoreError::Damaged(_)));
}

#[tokio::test]
async fn damage_in_the_middle_is_reported_by_the_call_that_meets_it() {
    let (_directory, path) = place();
    let store = open(&path).await;
    store.commit(told("k", 500, 1)).await.expect("commit");
    store.close().await.expect("close");
    drop(store);
    let mut bytes = std::fs::read(&path).expect("read");
    let healthy = bytes.len() - 10 * 16_384;
    bytes[healthy..].fill(0xa5);
    std::fs::write(&path, bytes).expect("write");
    let store = reopened(&path).await;
    let list = Ledger::list(&store, &home(), &TurnFilter::default(), 1_000, None).await;
    let feed = store.changes_after(&home(), 0, 1_000).await;
    let damaged = [list.err(), feed.err()];
    assert!(
        damaged
            .iter()
            .flatten()
            .any(|error| matches!(error, StoreError::Damaged(_))),
        "{damaged:?}"
    );
}

#[tokio::test]
async fn a_second_process_is_kept_out_and_told_why() {
    let (_directory, path) = place();
    let store = open(&path).await;
    match refusal(&path).await {
        StoreError::Unavailable(message) => {
            assert!(
                message.contains("in use by another memfleet process"),
                "{message}"
            );
        }
        other => panic!("{other:?}"),
    }
    store
        .commit(told("k", 1, 1))
        .await
        .expect("the first goes on");
}

#[tokio::test]
async fn a_full_disk_is_an_error_and_loses_nothing() {
    let (_directory, path) = place();
    open(&path).await.close().await.expect("close");
    let options = Options {
        max_pages: Some(50),
        ..Options::default()
    };
    let store = SqliteStore::open(&path, options).await.expect("open");
    let mut kept = 0;
    let full = loop {
        match store.commit(told(&format!("k{kept}"), 10, kept)).await {
            Ok(_) => kept += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(full, StoreError::Full(_)), "{full:?}");
    assert!(kept > 0);
    assert_eq!(stored(&store).await, kept as usize * 10);
    let large = batch("large", vec![turn("x", &"x".repeat(300_000))]);
    let published = store.publish(&large, instant(0), Bounds::NONE).await;
    assert!(
        matches!(published, Err(StoreError::Full(_))),
        "{published:?}"
    );
    let filter = TurnFilter {
        turns: vec![turns("k0", 1)[0].id],
        ..TurnFilter::default()
    };
    let forgotten = store.erase(&home(), &filter).await.expect("room is made");
    assert_eq!(forgotten.turns.len(), 1);
    store.close().await.expect("close");
    drop(store);
    let store = reopened(&path).await;
    store.commit(told("more", 10, 1_000)).await.expect("commit");
    assert_eq!(stored(&store).await, kept as usize * 10 + 9);
}

#[tokio::test]
async fn a_backup_taken_while_writing_holds_whole_batches_and_opens_like_any_database() {
    let (directory, path) = place();
    let store = open(&path).await;
    store.commit(told("before", 100, 1)).await.expect("commit");
    let writer = tokio::spawn({
        let store = store.clone();
        async move {
            for n in 0..40 {
                store
                    .commit(told(&format!("during {n}"), 10, n + 2))
                    .await
                    .expect("commit");
            }
        }
    });
    let target = directory.path().join("copy.db");
    store.backup(&target).await.expect("backup");
    writer.await.expect("the writer ends");
    assert!(matches!(
        store.backup(&target).await,
        Err(BackupError::Exists(_))
    ));
    let beside = directory.path().join("from another process.db");
    memfleet_sqlite::backup(&path, &beside)
        .await
        .expect("no lock is needed");
    let missing = directory.path().join("missing.db");
    assert!(
        memfleet_sqlite::backup(&missing, &directory.path().join("x.db"))
            .await
            .is_err()
    );
    assert!(!missing.exists());
    let nowhere = directory.path().join("no such directory").join("copy.db");
    assert!(store.backup(&nowhere).await.is_err());
    let names = std::fs::read_dir(directory.path()).expect("a directory");
    assert!(
        names
            .flatten()
            .all(|entry| !entry.file_name().to_string_lossy().contains("partial"))
    );
    let restored = open(&target).await;
    let count = stored(&restored).await;
    assert!((100..=500).contains(&count) && count % 10 == 0, "{count}");
    restored
        .commit(told("after", 10, 900))
        .await
        .expect("it can be written to");
    let changes = restored
        .changes_after(&home(), 0, 10_000)
        .await
        .expect("changes");
    assert_eq!(changes.changes.len(), count + 10);
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_may_read_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let (directory, path) = place();
    let store = open(&path).await;
    store.commit(told("k", 10, 1)).await.expect("commit");
    let copy = directory.path().join("copy.db");
    store.backup(&copy).await.expect("backup");
    let entries = std::fs::read_dir(directory.path()).expect("a directory");
    let mut names = Vec::new();
    for entry in entries.flatten() {
        let mode = entry.metadata().expect("metadata").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", entry.path().display());
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    assert!(names.contains(&"memfleet.db-wal".to_owned()), "{names:?}");
}

/// As docs/errors.md says: stop, delete what belongs to the lost database, move the backup in its place.
#[tokio::test]
async fn a_backup_takes_the_place_of_a_database_that_left_its_wal() {
    let (directory, path) = place();
    let store = open(&path).await;
    store.commit(told("before", 100, 1)).await.expect("commit");
    let backup = directory.path().join("backup.db");
    store.backup(&backup).await.expect("backup");
    store.commit(told("after", 100, 2)).await.expect("commit");
    let (crashed, lost) = place();
    copy_files(directory.path(), crashed.path());
    let beside = |suffix: &str| crashed.path().join(format!("memfleet.db{suffix}"));
    let leftover = std::fs::metadata(beside("-wal")).expect("a WAL is left");
    assert!(leftover.len() > 0);
    for suffix in ["-wal", "-shm"] {
        std::fs::remove_file(beside(suffix)).expect("remove");
    }
    std::fs::rename(crashed.path().join("backup.db"), &lost).expect("move");
    let restored = open(&lost).await;
    assert_eq!(stored(&restored).await, 100);
    let more = restored.commit(told("more", 10, 900)).await;
    more.expect("it can be written to");
    assert_eq!(stored(&restored).await, 110);
}

/// The bytes stay, the mode of its journal among them.
#[tokio::test]
async fn the_file_of_another_application_is_refused_and_left_alone() {
    let tables = [
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)",
        "CREATE TABLE _sqlx_migrations (version BIGINT, description TEXT); CREATE TABLE notes (id INTEGER);
         INSERT INTO _sqlx_migrations VALUES (1, 'notes')",
    ];
    for tables in tables {
        let (_directory, path) = place();
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .create_if_missing(true);
        let mut connection = options.connect().await.expect("connect");
        connection.execute(tables).await.expect("tables");
        connection.close().await.expect("close");
        let before = std::fs::read(&path).expect("the file");
        let refused = refusal(&path).await.to_string();
        assert!(refused.contains("another application"), "{refused}");
        assert!(
            refused.contains("memfleet.db") && refused.contains("`notes`"),
            "{refused}"
        );
        assert_eq!(std::fs::read(&path).expect("the file"), before);
    }
}
