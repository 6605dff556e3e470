//! Changes of the embedding model.

use memfleet_domain::embedding::HeldEmbeddings;
use memfleet_ports::candidates::Candidates;
use memfleet_ports::conformance::model_switch as cases;
use memfleet_ports::conformance::samples::{batch, embedding_space, home, indexed, turn};
use memfleet_ports::feed::{Change, IndexFeed};
use memfleet_ports::ledger::Ledger;
use memfleet_ports::spaces::SpaceCatalog;
use sqlx::Executor;

use crate::database::Database;

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_model_goes_there_and_back() {
    let database = Database::migrated().await;
    cases::a_change_of_the_model_goes_there_and_back(&database.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_third_model_takes_the_place_of_the_first() {
    let database = Database::migrated().await;
    cases::a_third_model_takes_the_place_of_the_first(&database.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_without_vectors_gets_those_of_both_models() {
    let database = Database::migrated().await;
    cases::a_turn_without_vectors_gets_those_of_both_models(&database.store().await).await;
}

/// Builds of before stored the hash alone.
#[tokio::test(flavor = "multi_thread")]
async fn an_embedding_space_without_a_name_is_left_out_until_it_is_named() {
    let database = Database::migrated().await;
    let store = database.store().await;
    let space = embedding_space("1");
    let turns = indexed(batch("k", vec![turn("a", "one")]), 1);
    store.commit(vec![turns]).await.expect("commit");
    let mut connection = database.connect().await;
    let forget = "DELETE FROM memfleet.embedding_spaces";
    connection.execute(forget).await.expect("delete");
    let store = database.store().await;
    let nothing = HeldEmbeddings::default();
    assert_eq!(store.embeddings(&home()).await, Ok(nothing));
    assert_eq!(store.embedding_spaces().await, Ok(vec![]));
    let changes = store.changes_in(&home(), Some(&space), 0, 10).await;
    let changes = changes.expect("changes").changes;
    let Change::Stored(stored) = &changes[0] else {
        panic!("{changes:?}");
    };
    assert!(stored.passages[0].sentence.is_some());
    store.name_embedding(&space).await.expect("name");
    let held = store.embeddings(&home()).await.expect("embeddings");
    assert_eq!(held.served, Some(space));
}

/// Turns keep the embedding space of their first vectors.
#[tokio::test(flavor = "multi_thread")]
async fn the_extent_counts_turns_that_lack_vectors_where_searches_look() {
    let database = Database::migrated().await;
    let store = database.store().await;
    let turns = indexed(batch("k", vec![turn("a", "one"), turn("b", "two")]), 1);
    store.commit(vec![turns]).await.expect("commit");
    let extent = store.extent(&home(), None).await.expect("extent");
    assert_eq!(extent.without_vectors, 0);
    let mut connection = database.connect().await;
    let serve = "UPDATE memfleet.spaces SET second_embedding = 5, second_embedded = 0, serves_second = true";
    connection.execute(serve).await.expect("update");
    let extent = store.extent(&home(), None).await.expect("extent");
    assert_eq!(extent.without_vectors, 2);
}
