//! What the checklist of AMP asks of requests, replies, streams and sessions, on recorded and on random ones.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod placement;
mod preservation;
mod recorded;
mod replies;
mod requests;
mod sessions;
mod streams;
mod suspension;
mod tools;
