//! Vectors of large spaces in Qdrant, beside a store that stays the truth. A *mirror* follows the store's change feed; searches by
//! vector go to it once it has reached the store, and to the store at all other times. Experimental: the conformance suite is the
//! store's own, and no run against a Qdrant server is on record yet.
//!
//! `mirror` follows the feed, `points` is what a point holds, `collections` makes what points lie in, `search` is the store with
//! the mirror in front, `erasure` carries a forget over, `inspection` verifies and rebuilds.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod collections;
mod erasure;
mod failure;
mod inspection;
mod mirror;
mod points;
mod search;

pub use erasure::MirroredErasure;
pub use inspection::Findings;
pub use mirror::{Mirror, Options};
pub use search::MirroredCandidates;
