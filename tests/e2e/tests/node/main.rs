//! The scenarios on one node, as a real process from outside; and what only a node has: its file, its end, its queue.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../scenarios/conversation.rs"]
mod conversation;
#[path = "../scenarios/forgetting.rs"]
mod forgetting;
#[path = "../scenarios/keys.rs"]
mod keys;
mod process;
#[path = "../scenarios/reading.rs"]
mod reading;
#[path = "../scenarios/refusals.rs"]
mod refusals;
mod secrets;
mod system;
#[path = "../scenarios/tenants.rs"]
mod tenants;
mod traces;
#[path = "../scenarios/transfer.rs"]
mod transfer;
