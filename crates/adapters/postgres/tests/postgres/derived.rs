//! What is derived is found by its words, as turns are, and leaves none behind.

use std::sync::Arc;

use memfleet_domain::ids::TurnId;
use memfleet_ports::candidates::Candidates;
use memfleet_ports::conformance::knowledge::{closing, deriving, fact};
use memfleet_ports::conformance::samples::{batch, home, indexed, instant, passages, turn};
use memfleet_ports::erasure::Erasure;
use memfleet_ports::feed::IndexFeed;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge::{Applied, Knowledge, Work};
use memfleet_ports::ledger::Ledger;
use memfleet_ports::testing::NothingWaits;
use memfleet_postgres::{PostgresErasure, PostgresStore};

use crate::database::Database;

/// The passages in which a word is.
async fn found(store: &PostgresStore, word: &str) -> Vec<u32> {
    let postings = store.postings(&home(), &[word.to_owned()]).await;
    let postings = postings.expect("postings").remove(0);
    postings.iter().map(|(passage, _)| *passage).collect()
}

async fn forget(store: &PostgresStore, turn: TurnId) {
    let erasure = PostgresErasure::new(store.clone(), Arc::new(NothingWaits));
    let filter = TurnFilter {
        turns: vec![turn],
        ..TurnFilter::default()
    };
    erasure.remove(&home(), &filter).await.expect("remove");
}

#[tokio::test]
async fn passages_of_what_is_derived_come_and_go_with_it() {
    let database = Database::migrated().await;
    let store = database.store().await;
    let [rome, oslo] = [turn("1", "told rome"), turn("2", "told oslo")];
    let told = indexed(batch("b", vec![rome.clone(), oslo.clone()]), 1);
    store.commit(vec![told]).await.expect("commit");
    let [first, second] = [
        fact(&rome, "Ada", "Rome", instant(1)),
        fact(&oslo, "Ada", "Oslo", instant(2)),
    ];
    let mut closing = closing(&first, &second, 30);
    closing.revisions[0].passage = passages("formerly").pop();
    let work = Work {
        rewrites: vec![deriving(&[&first]), deriving(&[&second]), closing],
        ..Work::default()
    };
    assert_eq!(store.apply(&home(), work).await, Ok(Applied::Done(5)));
    assert_eq!(found(&store, "lives").await, [2, 3]);
    assert_eq!(found(&store, "formerly").await, [4]);
    let vectors = store.token_vectors(&home(), None, &[2, 3, 4]).await;
    assert!(vectors.expect("vectors").iter().all(Option::is_some));

    // With the newer fact goes the version that it closed; the older one is found as before.
    forget(&store, oslo.id).await;
    assert_eq!(found(&store, "lives").await, [2]);
    assert_eq!(found(&store, "formerly").await, [0_u32; 0]);
    forget(&store, rome.id).await;
    assert_eq!(found(&store, "lives").await, [0_u32; 0]);
    let left = store.passages(&home(), None, &[0, 1, 2, 3, 4]).await;
    assert_eq!(left, Ok(vec![None; 5]));
    let vectors = store.token_vectors(&home(), None, &[2, 3, 4]).await;
    assert!(vectors.expect("vectors").iter().all(Option::is_none));
}
