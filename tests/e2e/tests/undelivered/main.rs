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
#[expect(dead_code, reason = "nothing stands in front of the store here")]
mod whole;

use std::sync::Arc;

use memfleet_nats::{NatsQueue, Options};

use crate::database::Database;
use crate::server::Streams;
use crate::whole::Whole;

async fn fresh() -> (Whole<NatsQueue>, (Database, Streams)) {
    let database = Database::migrated().await;
    let store = database.store().await;
    let options = Options {
        accepted: Some(Arc::new(store.clone())),
        ..server::options()
    };
    let queue = server::connected(&options).await;
    (Whole::new(store, queue), (database, Streams::of(options)))
}

memfleet_ports::undelivered_conformance!(fresh);
