//! Changes of the embedding model.

use memfleet_domain::embedding::HeldEmbeddings;
use memfleet_ports::candidates::Candidates;
use memfleet_ports::conformance::model_switch as cases;
use memfleet_ports::conformance::samples::{batch, embedding_space, home, indexed, turn};
use memfleet_ports::feed::{Change, IndexFeed};
use memfleet_ports::ledger::Ledger;
use memfleet_ports::model_switch::{ModelSwitches, OrderGiver, SwitchGoal, SwitchOrder};
use memfleet_ports::spaces::SpaceCatalog;
use memfleet_postgres::PostgresStore;
use sqlx::Executor;

use crate::database::Database;

async fn fresh() -> (PostgresStore, Database) {
    let database = Database::migrated().await;
    (database.store().await, database)
}

memfleet_ports::model_switch_conformance!(fresh);

#[tokio::test(flavor = "multi_thread")]
async fn turns_name_an_embedding_space_that_searches_use() {
    let (store, database) = fresh().await;
    let named = async || {
        let mut connection = database.connect().await;
        let named = sqlx::query_scalar("SELECT count(embedding) FROM memfleet.turns");
        named.fetch_one(&mut connection).await.expect("a count")
    };
    cases::turns_name_an_embedding_space_that_searches_use(&store, named).await;
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

/// Builds of before, which know 27 migrations.
#[tokio::test(flavor = "multi_thread")]
async fn builds_of_before_are_refused_from_a_switch_until_it_is_rolled_back_and_dropped() {
    let database = Database::migrated().await;
    let store = database.store().await;
    let mut connection = database.connect().await;
    for (goal, drops, since) in [
        (None, false, 1),
        (Some(SwitchGoal::Compare), false, 28),
        (Some(SwitchGoal::Serve), true, 28),
        (Some(SwitchGoal::RollBack), false, 28),
        (Some(SwitchGoal::RollBack), true, 1),
    ] {
        if let Some(goal) = goal {
            let target = embedding_space("2");
            let order = SwitchOrder {
                target,
                goal,
                drops,
                forced: false,
                every_language: false,
                giver: OrderGiver::Operator,
            };
            store.set_order(&order).await.expect("order");
        }
        let compatible = sqlx::query_scalar("SELECT memfleet.compatible_since()");
        let compatible: i64 = compatible.fetch_one(&mut connection).await.expect("since");
        assert_eq!(compatible, since, "{goal:?} {drops}");
    }
}
