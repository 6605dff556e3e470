//! The retrieval core: which turns of a space a query means. Pure: no network, no storage, no clock.
//!
//! [`document::documents`] turns a turn into indexed passages; [`SpaceIndex`] holds a space in memory; [`Plan`] is what a
//! query means; [`lexical()`] looks up its words; [`candidates()`] picks some hundred turns by BM25 and sentence vectors; the
//! caller reads the token vectors that [`Candidates::needed`] names; [`rank()`] scores the candidates by all [`Signal`]s under
//! [`Weights`]; [`Relevance`] says how likely each bears on the query.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod again;
mod calibration;
mod candidates;
mod coherence;
pub mod document;
mod dot;
mod excerpt;
#[cfg(test)]
mod fixture;
mod fusion;
mod index;
mod late_interaction;
mod lexical;
mod plan;
mod rank;
mod relevance;
mod searched;
mod signal;
mod signals;
mod standard;
mod top;
mod walk;
mod weights;

pub use calibration::{ModelCalibration, ModelCalibrations};
pub use candidates::{Candidates, candidates, wanted};
pub use excerpt::{Excerpt, Sample};
pub use fusion::{FUSED_TURNS, FUSION, ModelRanking, ScoredTurn, fuse};
pub use index::{Eligible, SpaceIndex};
pub use lexical::{Lexical, lexical};
pub use plan::{Plan, embedded_text};
pub use rank::{Ranked, rank};
pub use relevance::{Clue, Clues, Relevance};
pub use searched::Searched;
pub use signal::Signal;
pub use weights::{Again, Bm25, Route, Routes, Weights, WeightsError};
