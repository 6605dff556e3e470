//! Language models behind any OpenAI-compatible endpoint. A call passes, in order: the cache, a place among the requests, the
//! circuit breaker, the tenant's budget, HTTP, and again where that is worth it within its deadline. Prompts, replies and keys are
//! in no log and no metric, unless [`Options::trace_payloads`] asks for the first two.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod breaker;
mod budget;
mod cache;
mod dialect;
mod endpoint;
mod failure;
mod ledger;
mod model;
pub mod names;
pub mod options;
mod places;
mod requests;
mod streaming;
mod suspects;
#[cfg(feature = "testing")]
pub mod testing;
mod trace;
pub mod transport;
mod wire;

pub use ledger::MemoryLedger;
pub use model::OpenAi;
pub use options::Options;
