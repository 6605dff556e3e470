//! Data sets with annotated evidence, and the measures of retrieval on them. Knows files and numbers, no search.
//!
//! [`Dataset::load`] reads the LoCoMo format or the plain format (docs/benchmarks.md); [`Tally`] collects recall and coverage; [`fit`]
//! chooses the weights of a score, [`logistic`] the coefficients of a probability, and [`relevance`] says how far that can be trusted; [`clusters`] compares clusters with labels; [`updates`] tells dialogues in which facts change, [`constraints`] a chat about many tasks, [`connections`] one in which chains of statements connect people and things.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::float_cmp))]

pub mod clusters;
pub mod connections;
pub mod constraints;
mod dataset;
pub mod fit;
mod locomo;
pub mod logistic;
mod measure;
mod plain;
pub mod relevance;
mod time;
pub mod understanding;
pub mod updates;

pub use dataset::{Conversation, Dataset, DatasetError, Question, Role, Turn};
pub use measure::{Means, Shares, Tally};
