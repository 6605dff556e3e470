//! The queue on a real server. Every test has streams of its own, told apart by their prefix.

mod conformance;
mod server;
