//! The wire: everything that knows gRPC.
//!
//! [`proto`] is generated from `proto/memfleet/v1`. [`convert`] checks requests and turns messages into domain types and
//! back, [`status`] does the same for faults. [`server`] serves the traits of `memfleet-ports` (behind `auth`),
//! [`client`] implements them over a channel, so that a caller holds the same handle either way. [`fleet`] does
//! both for the roles among each other. [`jsonl`] is the file form of an export.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod auth;
pub mod client;
pub mod convert;
pub mod fleet;
pub mod jsonl;
pub mod limits;
pub mod proto;
pub mod server;
pub mod status;
#[cfg(test)]
mod strategies;
mod transport;

pub use client::Client;
