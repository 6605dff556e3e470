//! The words of memfleet: tenants, spaces, sessions, turns, time, embedding spaces, faults. Plain data with checked
//! constructors, so nothing further in validates again. No I/O, no async, no driver types.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod access;
pub mod embedding;
pub mod fault;
pub mod ids;
pub mod ingestion;
pub mod scope;
pub mod space;
pub mod time;
pub mod turn;

pub use fault::{Fault, FaultKind};
pub use scope::Scope;
pub use time::{Clock, Timestamp};
