//! PostgreSQL passes the suites of its ports.

mod derived;
mod prompts;

#[expect(
    dead_code,
    reason = "other tests put something behind it or in front of it"
)]
pub mod whole;

use memfleet_ports::testing::NothingWaits;
use memfleet_postgres::PostgresStore;

use self::whole::Whole;
use crate::database::Database;

async fn fresh() -> (PostgresStore, Database) {
    let database = Database::migrated().await;
    (database.store().await, database)
}

async fn fresh_whole() -> (Whole<NothingWaits>, Database) {
    let (store, database) = fresh().await;
    (Whole::new(store, NothingWaits), database)
}

macro_rules! suites {
    () => {
        memfleet_ports::ledger_conformance!(fresh);
        memfleet_ports::feed_conformance!(fresh);
        memfleet_ports::candidates_conformance!(fresh_whole);
        memfleet_ports::spaces_conformance!(fresh);
        memfleet_ports::erasure_conformance!(fresh_whole);
        memfleet_ports::keys_conformance!(fresh);
        memfleet_ports::knowledge_conformance!(fresh_whole);
        memfleet_ports::usage_conformance!(fresh);
        memfleet_ports::settings_conformance!(fresh_whole);
        memfleet_ports::exchanges_conformance!(fresh_whole);
        memfleet_ports::injections_conformance!(fresh_whole);
    };
}

suites!();

/// The suites on databases of every earlier version that were upgraded with memory in them.
mod upgraded {
    use super::{Database, NothingWaits, PostgresStore, Whole};
    use crate::upgrades::upgraded;

    async fn fresh() -> (PostgresStore, Database) {
        let database = upgraded().await;
        (database.store().await, database)
    }

    async fn fresh_whole() -> (Whole<NothingWaits>, Database) {
        let (store, database) = fresh().await;
        (Whole::new(store, NothingWaits), database)
    }

    suites!();
}
