//! The retriever on a real store, with a stand-in for the model.
#![allow(clippy::unwrap_used, reason = "tests")]

mod caching;
mod explained;
mod filters;
mod memory;
mod models;
mod past;
mod relevance;
mod scopes;
mod shape;
mod told;
