//! A queue row that cannot be read must not stop the others.

use std::path::Path;

use memfleet_domain::Timestamp;
use memfleet_domain::ids::BatchId;
use memfleet_domain::space::SpaceSettings;
use memfleet_ports::conformance::samples::{batch, home, instant, session, turn};
use memfleet_ports::erasure::{Erased, Erasure};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::ledger::Ledger;
use memfleet_ports::queue::{Bounds, DeadLetter, IngestQueue, Place};
use memfleet_ports::spaces::SpaceCatalog;
use memfleet_sqlite::{Options, SqliteStore};
use sqlx::{Connection, SqliteConnection};
use tempfile::TempDir;

const DAY: chrono::Days = chrono::Days::new(1);

/// Inside the JSON, so that what follows it is no longer understood.
const DAMAGED: &str = "{\"id\": \"a secret that was said";

async fn raw(path: &Path) -> SqliteConnection {
    let url = format!("sqlite:{}", path.display());
    SqliteConnection::connect(&url).await.expect("connect")
}

/// A queue of one damaged row and a sound one behind it; the damaged batch, and the position of the sound one.
async fn damaged() -> (TempDir, SqliteStore, BatchId, u64) {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("memfleet.db");
    let opened = SqliteStore::open(&path, Options::default()).await;
    let store = opened.expect("open");
    let poison = batch("poison", vec![turn("a", "x")]);
    let sound = batch("sound", vec![turn("b", "y")]);
    let first = store
        .publish(&poison, instant(0), Bounds::NONE)
        .await
        .expect("publish");
    let second = store
        .publish(&sound, instant(0), Bounds::NONE)
        .await
        .expect("publish");
    sqlx::query("UPDATE queue SET payload = ? WHERE acceptance = ?")
        .bind(DAMAGED)
        .bind(first.acceptance as i64)
        .execute(&mut raw(&path).await)
        .await
        .expect("damage");
    (directory, store, poison.id, second.acceptance)
}

async fn letters(store: &SqliteStore) -> Vec<DeadLetter> {
    let letters = store
        .dead_letters(&home().tenant, Some(&home().space), 10, None)
        .await;
    letters.expect("dead letters").items
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_buried_as_it_is_and_those_behind_it_come() {
    let (directory, store, poison, sound) = damaged().await;
    let waits = store.place(&home(), poison).await;
    assert_eq!(waits, Ok(Some(Place::Waiting)), "its payload is not read");
    // One turn at a time: the damaged row is all that the first look finds.
    let deliveries = store.take(1).await.expect("take");
    assert_eq!(deliveries.len(), 1);
    assert_eq!(deliveries[0].acceptance, sound);
    let letters = letters(&store).await;
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].batch.id, poison);
    assert!(letters[0].batch.turns.is_empty());
    let reason = &letters[0].reason;
    assert!(reason.starts_with("PAYLOAD_UNREADABLE"), "{reason}");
    assert!(!reason.contains("secret"), "{reason}");
    let payload: String = sqlx::query_scalar("SELECT payload FROM dead_letters")
        .fetch_one(&mut raw(&directory.path().join("memfleet.db")).await)
        .await
        .expect("payload");
    assert_eq!(payload, DAMAGED);
}

#[tokio::test]
async fn a_letter_that_cannot_be_read_is_replayed_as_it_was_and_goes_with_its_space() {
    let (_directory, store, poison, sound) = damaged().await;
    store.take(10).await.expect("take");
    store.acknowledge(&[sound]).await.expect("acknowledge");
    assert_eq!(store.replay(&home(), &[]).await, Ok(1));
    assert!(letters(&store).await.is_empty());
    assert!(store.take(10).await.expect("take").is_empty());
    let buried = store.buried(&home(), poison).await.expect("buried");
    assert!(buried.is_some());
    let everything = TurnFilter::default();
    store.erase(&home(), &everything).await.expect("erase");
    assert!(letters(&store).await.is_empty());
}

/// What is from before an instant, by a period of a day.
async fn expire(store: &SqliteStore, before: Timestamp) -> Erased {
    let settings = SpaceSettings {
        retention_days: Some(1),
        ..SpaceSettings::default()
    };
    let put = store.put(&home(), &settings, instant(0)).await;
    put.expect("put");
    let expired = store.expire(&home(), before + DAY, 100).await;
    expired.expect("expire")
}

#[tokio::test]
async fn what_cannot_be_read_expires_by_its_own_time() {
    let (_directory, store, _, _) = damaged().await;
    let waiting = async |before| {
        let erased = expire(&store, before).await;
        (
            erased.unreadable,
            store.depth(None).await.expect("depth").all.batches,
        )
    };
    assert_eq!(
        waiting(instant(0)).await,
        (0, 2),
        "accepted at 0 and not before"
    );
    assert_eq!(
        waiting(instant(1)).await,
        (1, 0),
        "both, as both were accepted at 0"
    );
    let (_directory, store, _, sound) = damaged().await;
    store.take(10).await.expect("take");
    store.acknowledge(&[sound]).await.expect("acknowledge");
    let buried_at = letters(&store).await[0].failed_at;
    for (before, left) in [
        (instant(1), 1),
        (buried_at, 1),
        (Timestamp::MAX_UTC - DAY, 0),
    ] {
        expire(&store, before).await;
        assert_eq!(letters(&store).await.len(), left, "{before}");
    }
}

#[tokio::test]
async fn a_letter_that_cannot_be_read_holds_up_no_forget_and_goes_with_it() {
    let (_directory, store, poison, sound) = damaged().await;
    store.take(10).await.expect("take");
    store.acknowledge(&[sound]).await.expect("acknowledge");
    let of_nobody = TurnFilter {
        sessions: vec![session("a session that is not there")],
        ..TurnFilter::default()
    };
    let planned = store.plan(&home(), &of_nobody).await.expect("plan");
    assert_eq!((planned.unreadable, planned.undelivered), (1, 0));
    assert_eq!(store.erase(&home(), &of_nobody).await, Ok(planned));
    assert!(letters(&store).await.is_empty());
    // Sent again it is no retry of something known.
    let known = store.batch(&home(), poison).await.expect("batch");
    assert_eq!(known, None);
}
