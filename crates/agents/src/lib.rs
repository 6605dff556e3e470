//! Parts of AMA's four agents that need no model: episodes, narratives and relations, how the
//! retriever reads a query, and checks of what a language model says. Pure: text and facts in,
//! facts and decisions out; no clock, no store, no model.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod conflicts;
pub mod episodes;
pub mod facts;
pub mod narratives;
pub mod reading;
pub mod relations;
pub mod relevance;
