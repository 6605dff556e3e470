//! The refresher on a real store.
#![allow(clippy::unwrap_used, reason = "tests")]

mod bench;
mod queued;
mod requests;
mod retention;
mod scrubbing;
mod watched;
