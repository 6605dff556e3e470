//! Large batches, which are stored part by part: a delivery that is cut off between two parts, and
//! a forget that comes there.

use memfleet_domain::ingestion::TurnState;
use memfleet_ports::conformance::samples::{batch, edit, home, indexed, instant, passages, turn};
use memfleet_ports::erasure::Erasure;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::ledger::{IndexedBatch, Ledger};
use memfleet_ports::queue::{Bounds, DeadLetter, IngestQueue};

use super::{BatchCommit, PART_BYTES};
use crate::store::{Options, SqliteStore};

/// Turns that fill three parts, the last of which edits the first.
fn large() -> IndexedBatch {
    let text = "word ".repeat(PART_BYTES / 10);
    let mut turns: Vec<_> = (0..5)
        .map(|number| turn(&number.to_string(), &text))
        .collect();
    turns.push(edit(&turns[0], "edit", "another word"));
    indexed(batch("large", turns), 1)
}

async fn store() -> (tempfile::TempDir, SqliteStore) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memfleet.db");
    let store = SqliteStore::open(path, Options::default()).await.unwrap();
    (directory, store)
}

async fn store_part(store: &SqliteStore, commit: &mut BatchCommit<'_>) -> bool {
    let mut write = store.write().await.unwrap();
    let outcome = commit.store_part(&mut write).await.unwrap();
    write.commit().await.unwrap();
    outcome.is_some()
}

#[tokio::test]
async fn a_large_batch_has_parts_and_a_small_one_has_not() {
    let large = large();
    let mut commit = BatchCommit::new(&large).unwrap();
    assert!(commit.is_large());
    let (_directory, store) = store().await;
    let mut parts = 1;
    while !store_part(&store, &mut commit).await {
        parts += 1;
    }
    assert_eq!(parts, 3);
    let small = indexed(batch("small", vec![turn("a", "x")]), 2);
    assert!(!BatchCommit::new(&small).unwrap().is_large());
    let empty = indexed(batch("empty", Vec::new()), 3);
    let mut empty = BatchCommit::new(&empty).unwrap();
    assert!(!empty.is_large());
    assert!(store_part(&store, &mut empty).await);
}

#[tokio::test]
async fn a_delivery_that_was_cut_off_between_two_parts_stores_each_turn_once_when_it_is_made_again()
{
    let (_directory, store) = store().await;
    let large = large();
    let mut commit = BatchCommit::new(&large).unwrap();
    assert!(!store_part(&store, &mut commit).await);
    let known = store.batch(&home(), large.batch.id).await.unwrap();
    assert_eq!(known, None, "who waits for it waits on");
    let committed = store.commit(vec![large.clone()]).await.unwrap().remove(0);
    let mut states = committed.turns.iter().map(|turn| turn.state);
    assert!(states.all(|state| state == TurnState::Stored));
    let ids: Vec<_> = large.batch.turns.iter().map(|turn| turn.id).collect();
    let stored = store.turns(&home(), &ids).await.unwrap();
    let positions: Vec<_> = stored.iter().map(|turn| turn.position).collect();
    assert_eq!(positions, [0, 1, 2, 3, 4, 5]);
    assert_eq!(stored[0].replaced.as_ref().unwrap().by, ids[5]);
    let again = store.commit(vec![large]).await.unwrap().remove(0);
    assert_eq!(again, committed);
}

#[tokio::test]
async fn what_is_forgotten_between_two_parts_stays_forgotten() {
    let everything = TurnFilter::default();
    let first = TurnFilter {
        turns: vec![large().batch.turns[0].id, large().batch.turns[4].id],
        ..TurnFilter::default()
    };
    for (filter, gone) in [(everything, vec![0, 1, 2, 3, 4, 5]), (first, vec![0, 4])] {
        let (_directory, store) = store().await;
        let mut large = large();
        let published = store.publish(&large.batch, instant(0), Bounds::NONE).await;
        large.acceptance = published.unwrap().acceptance;
        store.take(1).await.unwrap();
        let mut commit = BatchCommit::new(&large).unwrap();
        assert!(!store_part(&store, &mut commit).await);
        store.erase(&home(), &filter).await.unwrap();
        let committed = loop {
            let mut write = store.write().await.unwrap();
            let outcome = commit.store_part(&mut write).await.unwrap();
            write.commit().await.unwrap();
            if let Some(committed) = outcome {
                break committed;
            }
        };
        let forgotten = committed.turns.iter().enumerate();
        let forgotten = forgotten.filter(|(_, turn)| turn.state == TurnState::Forgotten);
        let forgotten: Vec<_> = forgotten.map(|(place, _)| place).collect();
        assert_eq!(forgotten, gone);
        let ids: Vec<_> = large.batch.turns.iter().map(|turn| turn.id).collect();
        let left = store.turns(&home(), &ids).await.unwrap();
        assert_eq!(left.len(), ids.len() - gone.len());
        let waiting = store.waiting(&home(), large.batch.id).await.unwrap();
        let waiting = waiting.into_iter().flat_map(|batch| batch.turns);
        assert!(
            waiting
                .into_iter()
                .all(|turn| !gone.iter().any(|place| ids[*place] == turn.id))
        );
        if let Some(status) = store.batch(&home(), large.batch.id).await.unwrap() {
            assert_eq!(status.turns, committed.turns);
        }
    }
}

#[tokio::test]
async fn an_original_that_goes_with_its_edit_leaves_the_queue_too() {
    let (_directory, store) = store().await;
    let mut large = large();
    large.batch.turns[1] = edit(&large.batch.turns[0], "soon", "another word");
    large.passages[1] = passages("another word");
    let published = store.publish(&large.batch, instant(0), Bounds::NONE).await;
    large.acceptance = published.unwrap().acceptance;
    let mut commit = BatchCommit::new(&large).unwrap();
    assert!(!store_part(&store, &mut commit).await);
    let filter = TurnFilter {
        turns: vec![large.batch.turns[1].id],
        ..TurnFilter::default()
    };
    let erased = store.erase(&home(), &filter).await.unwrap();
    assert_eq!((erased.turns.len(), erased.undelivered), (2, 0));
    let waiting = store.waiting(&home(), large.batch.id).await.unwrap();
    assert_eq!(waiting.unwrap().turns, large.batch.turns[2..]);
}

#[tokio::test]
async fn a_batch_that_is_given_up_between_two_parts_says_which_turns_are_stored() {
    let (_directory, store) = store().await;
    let mut large = large();
    let published = store.publish(&large.batch, instant(0), Bounds::NONE).await;
    large.acceptance = published.unwrap().acceptance;
    let mut commit = BatchCommit::new(&large).unwrap();
    assert!(!store_part(&store, &mut commit).await);
    let letter = DeadLetter {
        acceptance: large.acceptance,
        batch: large.batch.clone(),
        reason: "STORE_REFUSED".into(),
        failed_at: instant(1),
        attempts: 5,
    };
    store.dead_letter(&letter).await.unwrap();
    let status = store.batch(&home(), large.batch.id).await.unwrap().unwrap();
    let stored = status
        .turns
        .iter()
        .filter(|turn| turn.state == TurnState::Stored);
    let stored = stored.count();
    assert!(stored > 0 && stored < large.batch.turns.len());
    let buried = store
        .buried(&home(), large.batch.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(buried.batch.turns, large.batch.turns[stored..]);
    assert_eq!(store.replay(&home(), &[]).await, Ok(1));
    let delivery = store.take(1).await.unwrap().remove(0);
    let replayed = indexed(delivery.batch, delivery.acceptance);
    let committed = store.commit(vec![replayed]).await.unwrap().remove(0);
    assert!(
        committed
            .turns
            .iter()
            .all(|turn| turn.state == TurnState::Stored)
    );
    let status = store.batch(&home(), large.batch.id).await.unwrap().unwrap();
    assert!(
        status
            .turns
            .iter()
            .all(|turn| turn.state == TurnState::Stored)
    );
    assert_eq!(status.turns.len(), large.batch.turns.len());
}
