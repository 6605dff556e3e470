//! Storage of a single node: one SQLite file behind the storage ports.
//!
//! WAL with `synchronous=FULL`: what a call has stored survives `kill -9` and power loss; exchanges under way,
//! which a new search replaces, `kill -9`. One process at a time: a lock
//! file beside the database keeps a second one out. One writer at a time, readers beside it on snapshots.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod audit;
mod backup;
mod erasure;
mod exchanges;
mod failure;
mod feed;
mod filter;
mod graph;
mod injections;
mod keys;
mod knowledge;
mod ledger;
mod lock;
mod mentions;
mod model_switch;
mod passages;
mod private;
mod queue;
mod rows;
mod schema;
mod scope;
mod scrub;
mod settings;
mod spaces;
mod store;
mod tenants;
mod tombstones;
mod usage;

pub use backup::{BackupError, backup};
pub use schema::{migrate_to, versions};
pub use store::{Options, SqliteStore};
