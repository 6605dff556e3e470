//! Batches whose payload is in parts: taken, forgotten, buried and put back as others are, and
//! nothing of one is left that never came into the queue.

use std::path::{Path, PathBuf};

use memfleet_domain::ingestion::Batch;
use memfleet_domain::time::Timestamp;
use memfleet_ports::conformance::samples::{batch, home, instant, turn};
use memfleet_ports::erasure::Erasure;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::queue::{Bounds, DeadLetter, IngestQueue};
use memfleet_ports::store::StoreError;
use memfleet_sqlite::{Options, SqliteStore};
use sqlx::{Connection, SqliteConnection};
use tempfile::TempDir;

/// Some MiB of text of more than one byte a character.
fn large(key: &str) -> Batch {
    let text = "Große Wörter 大きな言葉 ".repeat(60_000);
    batch(key, vec![turn("a", &text), turn("b", "a short one")])
}

async fn opened() -> (TempDir, PathBuf, SqliteStore) {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("memfleet.db");
    let store = open(&path).await;
    (directory, path, store)
}

async fn open(path: &Path) -> SqliteStore {
    let opened = SqliteStore::open(path, Options::default()).await;
    opened.expect("open")
}

async fn publish(store: &SqliteStore, batch: &Batch) -> u64 {
    let published = store.publish(batch, instant(0), Bounds::NONE).await;
    published.expect("publish").acceptance
}

async fn raw(path: &Path) -> SqliteConnection {
    let url = format!("sqlite:{}", path.display());
    SqliteConnection::connect(&url).await.expect("connect")
}

async fn parts(path: &Path) -> i64 {
    let parts = sqlx::query_scalar("SELECT count(*) FROM queue_parts");
    parts
        .fetch_one(&mut raw(path).await)
        .await
        .expect("a count")
}

#[tokio::test]
async fn a_large_batch_is_handed_out_as_it_came_also_after_a_restart() {
    let (_directory, path, store) = opened().await;
    let told = large("k");
    let acceptance = publish(&store, &told).await;
    assert!(parts(&path).await > 3);
    let again = store.publish(&told, instant(1), Bounds::NONE).await;
    let again = again.expect("the same batch");
    assert!(again.duplicate && again.acceptance == acceptance);
    let whole = parts(&path).await;
    drop(store);
    let store = open(&path).await;
    assert_eq!(parts(&path).await, whole, "the duplicate left none");
    let waiting = store.waiting(&home(), told.id).await.expect("a look");
    assert_eq!(waiting.as_ref(), Some(&told));
    let delivery = store.take(1).await.expect("take").remove(0);
    assert_eq!((&delivery.batch, delivery.attempt), (&told, 1));
    store.acknowledge(&[acceptance]).await.expect("acknowledge");
    assert_eq!(parts(&path).await, 0);
}

#[tokio::test]
async fn a_large_batch_that_is_refused_leaves_no_part() {
    let (_directory, path, store) = opened().await;
    publish(&store, &batch("k", vec![turn("a", "x")])).await;
    let conflict = store.publish(&large("k"), instant(0), Bounds::NONE).await;
    assert!(
        matches!(conflict, Err(StoreError::Conflict { .. })),
        "{conflict:?}"
    );
    let bounds = Bounds {
        bytes: 1 << 20,
        ..Bounds::NONE
    };
    let full = store.publish(&large("l"), instant(0), bounds).await;
    assert!(
        matches!(full, Err(StoreError::QueueFull { .. })),
        "{full:?}"
    );
    assert_eq!(parts(&path).await, 0);
}

#[tokio::test]
async fn parts_of_a_batch_that_never_came_into_the_queue_go_at_the_next_start() {
    let (_directory, path, store) = opened().await;
    let told = large("k");
    publish(&store, &told).await;
    let whole = parts(&path).await;
    store.close().await.expect("close");
    drop(store);
    sqlx::query("INSERT INTO queue_parts (payload, text) VALUES (77, 'begun')")
        .execute(&mut raw(&path).await)
        .await
        .expect("a part");
    let store = open(&path).await;
    assert_eq!(parts(&path).await, whole);
    let delivery = store.take(1).await.expect("take").remove(0);
    assert_eq!(delivery.batch, told);
}

#[tokio::test]
async fn a_turn_of_a_large_batch_is_forgotten_while_it_waits() {
    let (_directory, path, store) = opened().await;
    let told = large("k");
    publish(&store, &told).await;
    for (place, left) in [(0, 1), (1, 0)] {
        let filter = TurnFilter {
            turns: vec![told.turns[place].id],
            ..TurnFilter::default()
        };
        let erased = store.erase(&home(), &filter).await.expect("erase");
        assert_eq!(erased.undelivered, 1);
        assert_eq!(parts(&path).await, 0);
        let deliveries = store.take(1).await.expect("take");
        assert_eq!(deliveries.len(), left);
        if let [delivery] = &deliveries[..] {
            assert_eq!(delivery.batch.turns, told.turns[1..]);
            store
                .release(&[delivery.acceptance])
                .await
                .expect("release");
        }
    }
}

#[tokio::test]
async fn a_large_batch_becomes_a_dead_letter_and_is_replayed() {
    let (_directory, path, store) = opened().await;
    let told = large("k");
    let acceptance = publish(&store, &told).await;
    store.take(1).await.expect("take");
    let letter = DeadLetter {
        acceptance,
        batch: told.clone(),
        reason: "POISON".into(),
        failed_at: Timestamp::UNIX_EPOCH,
        attempts: 1,
    };
    store.dead_letter(&letter).await.expect("bury");
    assert_eq!(parts(&path).await, 0);
    assert_eq!(store.replay(&home(), &[]).await, Ok(1));
    let delivery = store.take(1).await.expect("take").remove(0);
    assert_eq!((&delivery.batch, delivery.attempt), (&told, 1));
}

#[tokio::test]
async fn a_large_batch_with_a_damaged_part_is_buried() {
    let (_directory, path, store) = opened().await;
    let told = large("k");
    publish(&store, &told).await;
    sqlx::query("UPDATE queue_parts SET text = char(34) WHERE part = 2")
        .execute(&mut raw(&path).await)
        .await
        .expect("damage");
    assert!(store.take(1).await.expect("take").is_empty());
    let letter = store.buried(&home(), told.id).await.expect("a look");
    let reason = letter.expect("a letter").reason;
    assert!(reason.starts_with("PAYLOAD_UNREADABLE"), "{reason}");
    assert_eq!(parts(&path).await, 0);
}

#[tokio::test]
async fn a_large_batch_whose_caller_leaves_before_it_is_accepted_never_is() {
    let (_directory, path, store) = opened().await;
    let told = large("k");
    {
        let mut publishing = std::pin::pin!(store.publish(&told, instant(0), Bounds::NONE));
        while parts(&path).await == 0 {
            assert!(futures::poll!(&mut publishing).is_pending());
        }
    }
    while parts(&path).await > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(store.take(1).await.expect("take").is_empty());
    publish(&store, &told).await;
    assert_eq!(store.take(1).await.expect("take").remove(0).batch, told);
}

#[tokio::test]
async fn a_batch_that_lost_all_of_its_parts_is_buried_and_others_come() {
    let (_directory, path, store) = opened().await;
    let told = large("k");
    publish(&store, &told).await;
    publish(&store, &batch("sound", vec![turn("c", "y")])).await;
    sqlx::query("DELETE FROM queue_parts")
        .execute(&mut raw(&path).await)
        .await
        .expect("damage");
    let mut taken = store.take(1).await.expect("take");
    taken.extend(store.take(1).await.expect("take"));
    assert_eq!(taken.len(), 1);
    assert!(
        store
            .buried(&home(), told.id)
            .await
            .expect("a look")
            .is_some()
    );
}
