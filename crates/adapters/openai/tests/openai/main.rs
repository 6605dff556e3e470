//! Models behind an endpoint that plays a script, in time that stands still; and over real HTTP.
#![allow(clippy::unwrap_used, reason = "tests")]

mod budgets;
mod faults;
mod garbage;
mod http;
mod protocol;
mod redaction;
mod setup;
mod streams;
