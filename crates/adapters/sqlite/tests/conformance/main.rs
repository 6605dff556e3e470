//! SQLite passes the suites of every storage port.

mod upgrades;

use memfleet_ports::conformance::graph::{said_something, spaces};
use memfleet_ports::conformance::model_switch as model_switch_cases;
use memfleet_sqlite::{Options, SqliteStore};
use sqlx::ConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
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
        memfleet_ports::model_switch_conformance!(fresh);
    };
}

suites!();

#[tokio::test]
async fn turns_name_an_embedding_space_that_searches_use() {
    let (store, directory) = fresh().await;
    let path = directory.path().join("memfleet.db");
    let named = async || {
        let options = SqliteConnectOptions::new().filename(&path).read_only(true);
        let mut connection = options.connect().await.expect("a connection");
        let named = sqlx::query_scalar("SELECT count(embedding) FROM turns");
        named.fetch_one(&mut connection).await.expect("a count")
    };
    model_switch_cases::turns_name_an_embedding_space_that_searches_use(&store, named).await;
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
