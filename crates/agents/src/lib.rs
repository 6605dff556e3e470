//! AMA's four agents by rules alone: what the constructor finds in turns, how the retriever reads a query, what the judge
//! decides, how the refresher settles it. Pure: text and facts in, facts and decisions out; no clock, no store, no model.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod answering;
pub mod asking;
pub mod conflicts;
pub mod episodes;
pub mod facts;
pub mod narratives;
pub mod reading;
pub mod relations;
pub mod relevance;
