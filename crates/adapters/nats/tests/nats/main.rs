//! The queue on a real server. Every test has streams of its own, told apart by their prefix.
#![allow(clippy::unwrap_used, reason = "tests")]

mod access;
mod conformance;
mod crashes;
mod events;
mod forgetting;
mod happenings;
mod letters;
mod outage;
mod own;
mod replicas;
mod server;
mod setup;
mod speed;
