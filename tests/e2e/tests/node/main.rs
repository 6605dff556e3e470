//! The scenarios on one node, as a real process from outside; and what only a node has: its file, its end, its queue.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../scenarios/conversation.rs"]
mod conversation;
#[path = "../scenarios/forgetting.rs"]
mod forgetting;
#[path = "../../../../crates/adapters/oidc/tests/tokens/issuer.rs"]
#[expect(dead_code, reason = "the adapter's own tests ask for more of it")]
mod issuer;
#[path = "../scenarios/keys.rs"]
mod keys;
#[path = "../scenarios/knowing.rs"]
mod knowing;
mod models;
mod neighbours;
mod process;
#[path = "../scenarios/prompting.rs"]
mod prompting;
#[path = "../scenarios/reading.rs"]
mod reading;
#[path = "../scenarios/refusals.rs"]
mod refusals;
mod secrets;
#[path = "../scenarios/stating.rs"]
mod stating;
mod system;
#[path = "../scenarios/tenants.rs"]
mod tenants;
mod tokens;
mod traces;
#[path = "../scenarios/transfer.rs"]
mod transfer;
