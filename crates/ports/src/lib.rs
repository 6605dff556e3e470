//! The ports: what the services ask of storage, queue, models and each other, as traits over domain
//! types, with the conformance suites that every adapter passes. No driver and no wire type appears
//! here.
//!
//! Storage: [`ledger`], [`feed`], [`candidates`], [`erasure`], [`spaces`], [`queue`],
//! [`undelivered`], [`outbox`], [`keys`], [`tenants`], [`audit`], [`knowledge`], [`graph`],
//! [`settings`], [`exchanges`], [`conversations`], [`injections`]. Between roles: [`embedder`],
//! [`turn_reader`], [`retriever`], [`refresher`]. The public API: [`memory`], [`subject`],
//! [`assembly`], [`tools`], [`capture`], [`policies`], [`injections_api`], [`maintenance`],
//! [`admin`], and who may call it: [`access`]. Models behind the agents: [`language_model`], and
//! what they may cost: [`usage`].

pub mod access;
pub mod admin;
pub mod assembly;
pub mod audit;
pub mod candidates;
pub mod capture;
pub mod context;
pub mod conversations;
pub mod embedder;
pub mod erasure;
pub mod events;
pub mod exchanges;
pub mod feed;
pub mod filter;
pub mod graph;
pub mod health;
pub mod injections;
pub mod injections_api;
pub mod keys;
pub mod knowledge;
pub mod knowledge_api;
pub mod language_model;
pub mod ledger;
pub mod maintenance;
pub mod memory;
pub mod model_switch;
pub mod outbox;
pub mod policies;
pub mod queue;
pub mod refresher;
pub mod retriever;
pub mod settings;
pub mod spaces;
pub mod store;
pub mod subject;
pub mod tenants;
pub mod tools;
pub mod turn_reader;
pub mod undelivered;
pub mod usage;

#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(feature = "conformance")]
pub mod testing;
