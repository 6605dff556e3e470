//! The real servers that tests talk to, fetched and started on this machine without a container engine.
//!
//! `cargo xtask test` starts one PostgreSQL, one NATS and one Neo4j for all tests ([`Environment`]). A test that kills, pauses or restarts
//! its server starts one of its own ([`Postgres`], [`Nats`], [`Neo4j`]), and what talks to it beside ([`Program`]). A server ends with its handle or with the process that started
//! it, however that ends, and takes its data with it.

mod account;
mod environment;
pub mod fetch;
mod home;
mod nats;
mod neo4j;
mod port;
mod postgres;
mod processes;
mod program;
mod server;
mod supervisor;

pub use environment::{
    Environment, NATS_SERVER, NATS_URL, NEO4J_LIB, NEO4J_URL, POSTGRES_BIN, POSTGRES_URL,
};
pub use nats::Nats;
pub use neo4j::Neo4j;
pub use postgres::{Durability, Postgres};
pub use program::{Command, Program, free_port};
