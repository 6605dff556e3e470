//! Data sets with annotated evidence, and the measures of retrieval on them. Knows files and numbers, no search.
//!
//! [`Dataset::load`] reads the LoCoMo format or the plain format (docs/benchmarks.md); [`Tally`] collects recall and coverage.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::float_cmp))]

mod dataset;
mod locomo;
mod measure;
mod plain;
mod time;

pub use dataset::{Conversation, Dataset, DatasetError, Question, Role, Turn};
pub use measure::{Means, Shares, Tally};
