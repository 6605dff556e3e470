//! SQLite passes the suites of every storage port.

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

/// A graph is kept of spaces that are there.
async fn fresh_spaces() -> (SqliteStore, TempDir) {
    let (store, directory) = fresh().await;
    for space in spaces() {
        said_something(&store, &space).await;
    }
    (store, directory)
}

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
