//! Storage of the fleet: PostgreSQL with pgvector behind the ports ledger, knowledge, feed, erasure and spaces. The queue lives elsewhere.
//!
//! *Schema*: everything is in the schema `memfleet`; [`migrate`] makes it and brings it up to date, run as its owner. An owner
//! who is no superuser and may not make roles needs `memfleet_app` and `memfleet_sweep` made (`NOLOGIN`), and the second granted.
//! Migrations only add, so that replicas of the version before go on while those of the next one start; a replica that starts
//! refuses a database that is newer than itself.
//!
//! *Tenants*: every table has the column `tenant` and row-level security that holds for its owner too. Each transaction takes
//! the role `memfleet_app`, which owns nothing, and names its tenant; without one it sees no row. The user of the URL must be a
//! member: `GRANT memfleet_app TO …`. It should be no superuser, and need not be the owner. What looks across tenants (turns
//! without vectors, retention, what expires, agents that are behind, conflicts, the outbox) goes through functions that tell where there is work, and no more; a key is found by the
//! hash of its secret. Role, tenant and all
//! other settings last for one transaction, so a pooler may sit between.
//!
//! *Forgetting*: rows are deleted. Their bytes stay in dead tuples until PostgreSQL vacuums them, and in its log and in backups as
//! long as these are kept. That is the server's business: [`memfleet_ports::erasure::Erasure::scrub`] does nothing here.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod audit;
mod candidates;
mod erasure;
mod exchanges;
mod expiry;
mod failure;
mod feed;
mod filter;
mod injections;
mod keys;
mod knowledge;
mod ledger;
mod migrations;
mod model_switch;
mod outbox;
mod passages;
mod rows;
mod schema;
mod scope;
mod settings;
mod spaces;
mod store;
mod tenants;
mod tombstones;
mod transaction;
mod usage;

pub use erasure::PostgresErasure;
pub use migrations::versions;
pub use schema::{MIGRATE, Migrated, migrate, migrate_to};
pub use store::{Options, PostgresStore};
