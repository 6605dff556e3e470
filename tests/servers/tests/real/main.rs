//! The real servers, started, stopped, killed and left behind.
#![allow(clippy::unwrap_used, reason = "tests")]

mod environment;
mod nats;
mod orphans;
mod postgres;
mod processes;
