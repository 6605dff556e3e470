//! The scenarios on a fleet: the same as on one node, with every role a process of its own over PostgreSQL and NATS.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../scenarios/conversation.rs"]
mod conversation;
#[path = "../scenarios/forgetting.rs"]
mod forgetting;
#[path = "../scenarios/keys.rs"]
mod keys;
#[path = "../scenarios/knowing.rs"]
mod knowing;
mod moving;
#[path = "../scenarios/prompting.rs"]
mod prompting;
#[path = "../scenarios/reading.rs"]
mod reading;
#[path = "../scenarios/refusals.rs"]
mod refusals;
#[path = "../scenarios/stating.rs"]
mod stating;
mod system;
#[path = "../scenarios/tenants.rs"]
mod tenants;
#[path = "../scenarios/transfer.rs"]
mod transfer;
