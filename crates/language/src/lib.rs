//! Language: what text means to search and to time, in any script, without a model.
//!
//! One [`Analyzer`] turns text into lexical terms for the index and for queries. Beside it: sentence and passage bounds
//! ([`sentences`], [`passages`]), dates and relative time in questions ([`time`]), who a question is about
//! ([`mentions`]), its topic without the wording of the request ([`topic`]), and words as either side would say them ([`retold()`]). Everything here is pure: text in, data out; `now` is an argument.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod analyzer;
mod fold;
mod language;
pub mod mentions;
mod request;
mod retold;
mod segments;
mod spaceless;
mod stopwords;
pub mod time;
mod words;

pub use analyzer::Analyzer;
pub use fold::fold;
pub use language::Language;
pub use request::{connects, gathers, is_request, topic};
pub use retold::{Retold, retold};
pub use segments::{PASSAGE_CHARS, passages, sentences};
