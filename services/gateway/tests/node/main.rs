//! The gateway over the other roles and a real store, with a stand-in for the model.
#![allow(clippy::unwrap_used, reason = "tests")]

mod administering;
mod amp;
mod answering;
mod assembling;
mod auditing;
mod capturing;
mod echoes;
mod holding;
mod imagining;
mod injections;
mod inquiring;
mod isolation;
mod judging;
mod knowing;
mod naming;
mod outage;
mod policies;
mod quoting;
mod recalling;
mod relating;
mod roles;
mod spans;
mod stating;
mod subjects;
mod switching;
mod tools;
mod transfer;
mod verifying;
mod waiting;
mod writing;
