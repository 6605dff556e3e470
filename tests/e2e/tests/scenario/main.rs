//! The real process from outside: what a user's backend does with it, and what it meets when something is wrong.
#![allow(clippy::unwrap_used, reason = "tests")]

mod conversation;
mod forgetting;
mod process;
mod reading;
mod refusals;
mod tenants;
mod transfer;
