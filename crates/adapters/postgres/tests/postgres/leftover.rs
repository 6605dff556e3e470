//! What a graph beside the store holds of a forgotten space is cleared, whenever that can be.

use std::sync::Arc;

use memfleet_domain::time::Timestamp;
use memfleet_ports::conformance::samples::{batch, home, indexed, instant, turn};
use memfleet_ports::erasure::Erasure;
use memfleet_ports::feed::IndexFeed;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge::{Knowledge, Progress, Stage, Work};
use memfleet_ports::ledger::Ledger;
use memfleet_ports::testing::NothingWaits;
use memfleet_postgres::{PostgresErasure, PostgresStore};

use crate::database::Database;

const RELATE: Stage = Stage::Relate;

async fn told(acceptance: u64) -> (Database, PostgresStore) {
    let database = Database::migrated().await;
    let store = database.store().await;
    tell(&store, acceptance).await;
    (database, store)
}

async fn tell(store: &PostgresStore, acceptance: u64) {
    let told = batch(&acceptance.to_string(), vec![turn("1", "I live in Rome.")]);
    let told = store.commit(vec![indexed(told, acceptance)]).await;
    told.expect("commit");
}

async fn claim(store: &PostgresStore, now: i64, until: i64) -> Option<u64> {
    let claimed = store
        .claim(&home(), RELATE, instant(now), instant(until))
        .await;
    claimed.expect("claim")
}

async fn release(store: &PostgresStore, until: Timestamp) {
    let released = store.release(&home(), RELATE, until).await;
    released.expect("release");
}

async fn relate(store: &PostgresStore, until: i64) {
    let from = claim(store, 0, until).await.expect("nobody has it");
    let to = store.head(&home()).await.expect("head");
    let progress = Some(Progress {
        stage: RELATE,
        from,
        to,
    });
    let work = Work {
        progress,
        ..Work::default()
    };
    store.apply(&home(), work).await.expect("apply");
    release(store, instant(until)).await;
}

async fn forget_everything(store: &PostgresStore) {
    let erasure = PostgresErasure::new(store.clone(), Arc::new(NothingWaits));
    let everything = TurnFilter::default();
    erasure.remove(&home(), &everything).await.expect("remove");
}

async fn is_pending(store: &PostgresStore) -> bool {
    let pending = store.pending(RELATE, 9).await.expect("pending");
    let is_left_over = store.is_left_over(&home()).await.expect("an answer");
    assert!(!is_left_over || pending == [home()]);
    is_left_over
}

#[tokio::test]
async fn a_forgotten_space_that_is_in_a_graph_waits_until_that_is_cleared() {
    let (_database, store) = told(1).await;
    relate(&store, 9).await;
    assert!(!is_pending(&store).await);
    // Forgotten twice, it is the same.
    for _ in 0..2 {
        forget_everything(&store).await;
        assert!(is_pending(&store).await);
    }
    let derive = store
        .claim(&home(), Stage::Derive, instant(10), instant(20))
        .await;
    assert_eq!(derive, Ok(None));
    // Who takes it and dies is followed by another.
    assert_eq!(claim(&store, 10, 20).await, Some(0));
    assert_eq!(claim(&store, 11, 21).await, None);
    assert_eq!(claim(&store, 20, 30).await, Some(0));
    release(&store, instant(20)).await;
    assert_eq!(claim(&store, 21, 31).await, None);
    release(&store, instant(30)).await;
    assert_eq!(claim(&store, 21, 31).await, Some(0));
    store.cleared(&home()).await.expect("cleared");
    assert!(!is_pending(&store).await);
    assert_eq!(store.pending(RELATE, 9).await, Ok(Vec::new()));
    release(&store, instant(31)).await;
    assert_eq!(claim(&store, 40, 50).await, None);
}

#[tokio::test]
async fn of_a_space_that_was_in_no_graph_not_even_the_name_is_left() {
    let (database, store) = told(1).await;
    forget_everything(&store).await;
    assert!(!is_pending(&store).await);
    let mut connection = database.connect().await;
    let names = sqlx::query_scalar(
        "SELECT count(*) FROM memfleet.spaces WHERE name IS NOT NULL OR left_over IS NOT NULL",
    );
    let names: i64 = names.fetch_one(&mut connection).await.expect("a count");
    assert_eq!(names, 0);
}

#[tokio::test]
async fn what_is_written_anew_before_the_clearing_comes_after_it() {
    let (_database, store) = told(1).await;
    relate(&store, 9).await;
    forget_everything(&store).await;
    // Somebody clears it, and meanwhile the space is there again.
    assert_eq!(claim(&store, 10, 20).await, Some(0));
    tell(&store, 2).await;
    assert!(is_pending(&store).await);
    assert_eq!(claim(&store, 11, 21).await, None);
    // It broke off.
    release(&store, instant(20)).await;
    assert_eq!(claim(&store, 11, 21).await, Some(0));
    assert_eq!(claim(&store, 12, 22).await, None);
    store.cleared(&home()).await.expect("cleared");
    assert!(!is_pending(&store).await);
    release(&store, instant(21)).await;
    assert_eq!(store.pending(RELATE, 9).await, Ok(vec![home()]));
    relate(&store, 30).await;
    assert_eq!(store.pending(RELATE, 9).await, Ok(Vec::new()));
}

#[tokio::test]
async fn who_writes_to_the_graph_while_its_space_is_forgotten_is_waited_for() {
    let (_database, store) = told(1).await;
    assert_eq!(claim(&store, 0, 9).await, Some(0));
    forget_everything(&store).await;
    assert!(is_pending(&store).await);
    assert_eq!(claim(&store, 5, 15).await, None);
    release(&store, instant(9)).await;
    assert_eq!(claim(&store, 5, 15).await, Some(0));
    // As it is where the write was done and the note of it failed.
    let (_database, store) = told(1).await;
    assert_eq!(claim(&store, 0, 9).await, Some(0));
    release(&store, instant(9)).await;
    forget_everything(&store).await;
    assert!(is_pending(&store).await);
}
