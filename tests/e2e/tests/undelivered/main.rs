//! What every erasure does to what is not stored yet, with the ledger in PostgreSQL and the queue in NATS.
#![allow(clippy::unwrap_used, reason = "tests")]

mod queue;

#[path = "../../../../crates/adapters/postgres/tests/postgres/database.rs"]
#[expect(dead_code, reason = "the adapter's own tests ask for more of it")]
mod database;

#[path = "../../../../crates/adapters/nats/tests/nats/server.rs"]
#[expect(dead_code, reason = "the adapter's own tests ask for more of it")]
mod server;

#[path = "../../../../crates/adapters/postgres/tests/postgres/conformance/whole.rs"]
mod whole;

use memfleet_nats::NatsQueue;

use crate::database::Database;
use crate::server::Streams;
use crate::whole::Whole;

async fn fresh() -> (Whole<NatsQueue>, (Database, Streams)) {
    let database = Database::migrated().await;
    let (queue, streams) = server::fresh().await;
    let store = Whole::new(database.store().await, queue);
    (store, (database, streams))
}

memfleet_ports::undelivered_conformance!(fresh);
