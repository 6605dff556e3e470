//! SQLite passes the suites of every storage port.

mod upgrades;

use memfleet_ports::conformance::graph::{said_something, spaces};
use memfleet_sqlite::{Options, SqliteStore};
use tempfile::TempDir;

async fn fresh() -> (SqliteStore, TempDir) {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("memfleet.db");
    let store = SqliteStore::open(path, Options::default())
        .await
        .expect("an empty store");
    (store, directory)
}

async fn fresh_spaces() -> (SqliteStore, TempDir) {
    with_spaces(fresh().await).await
}

/// A graph is kept of spaces that are there.
async fn with_spaces((store, directory): (SqliteStore, TempDir)) -> (SqliteStore, TempDir) {
    for space in spaces() {
        said_something(&store, &space).await;
    }
    (store, directory)
}

macro_rules! suites {
    () => {
        memfleet_ports::ledger_conformance!(fresh);
        memfleet_ports::feed_conformance!(fresh);
        memfleet_ports::erasure_conformance!(fresh);
        memfleet_ports::undelivered_conformance!(fresh);
        memfleet_ports::spaces_conformance!(fresh);
        memfleet_ports::queue_conformance!(fresh);
        memfleet_ports::keys_conformance!(fresh);
        memfleet_ports::knowledge_conformance!(fresh);
        memfleet_ports::graph_conformance!(fresh_spaces);
        memfleet_ports::settings_conformance!(fresh);
        memfleet_ports::exchanges_conformance!(fresh);
        memfleet_ports::injections_conformance!(fresh);
    };
}

suites!();

#[tokio::test]
async fn a_change_of_the_model_goes_there_and_back() {
    let (store, _directory) = fresh().await;
    memfleet_ports::conformance::model_switch::a_change_of_the_model_goes_there_and_back(&store)
        .await;
}

#[tokio::test]
async fn a_third_model_takes_the_place_of_the_first() {
    let (store, _directory) = fresh().await;
    memfleet_ports::conformance::model_switch::a_third_model_takes_the_place_of_the_first(&store)
        .await;
}

#[tokio::test]
async fn a_busy_space_is_compared_while_its_last_turns_wait() {
    let (store, _directory) = fresh().await;
    memfleet_ports::conformance::model_switch::a_busy_space_is_compared_while_its_last_turns_wait(
        &store,
    )
    .await;
}

#[tokio::test]
async fn a_roll_back_removes_what_is_half_built() {
    let (store, _directory) = fresh().await;
    memfleet_ports::conformance::model_switch::a_roll_back_removes_what_is_half_built(&store).await;
}

#[tokio::test]
async fn an_unlike_model_is_served_when_it_is_forced() {
    let (store, _directory) = fresh().await;
    memfleet_ports::conformance::model_switch::an_unlike_model_is_served_when_it_is_forced(&store)
        .await;
}

#[tokio::test]
async fn a_turn_without_vectors_gets_those_of_both_models() {
    let (store, _directory) = fresh().await;
    memfleet_ports::conformance::model_switch::a_turn_without_vectors_gets_those_of_both_models(
        &store,
    )
    .await;
}

/// The suites on files of every earlier version that were upgraded with memory in them.
mod upgraded {
    use super::{Options, SqliteStore, TempDir, with_spaces};
    use crate::upgrades::upgraded;

    async fn fresh() -> (SqliteStore, TempDir) {
        let (directory, path) = upgraded().await;
        let store = SqliteStore::open(path, Options::default()).await;
        (store.expect("an upgraded store"), directory)
    }

    async fn fresh_spaces() -> (SqliteStore, TempDir) {
        with_spaces(fresh().await).await
    }

    suites!();
}
