//! The words of memfleet: tenants, spaces, sessions, turns, facts, episodes, narratives, time, embedding spaces, faults. Plain data
//! with checked constructors, so nothing further in validates again. No I/O, no async, no driver types.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod access;
pub mod assembly;
pub mod derivation;
pub mod embedding;
pub mod episode;
pub mod fact;
pub mod fault;
pub mod graph;
pub mod ids;
pub mod ingestion;
pub mod intent;
pub mod model_profile;
pub mod narrative;
pub mod policy;
pub mod quality;
pub mod scope;
pub mod space;
pub mod statement;
pub mod tense;
pub mod time;
pub mod topic;
pub mod turn;
mod words;

pub use fault::{Fault, FaultKind};
pub use scope::Scope;
pub use time::{Clock, Timestamp};
