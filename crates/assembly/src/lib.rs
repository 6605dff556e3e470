//! Assembly: choosing and rendering memory inside a token budget.
//!
//! [`assemble()`] takes ranked candidates and gives a block of text that never exceeds the budget, counted as a whole with
//! a named [`Tokenizer`]. It drops duplicates, cuts long turns to their relevant sentences, orders by time, and renders
//! stored text so that it can forge neither a turn nor the end of the block. Pure: no store, no model, no clock.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod assemble;
mod block;
mod candidate;
mod duplicates;
mod excerpt;
mod options;
mod relevance;
mod render;
mod sanitise;
mod selection;
mod tokenizer;

pub use assemble::assemble;
pub use block::{Block, Extent, Item, LeftOut, Reason};
pub use candidate::{Candidate, Outdated};
pub use options::{Nonce, Options};
pub use relevance::SentenceScorer;
pub use tokenizer::{Tokenizer, UnknownTokenizer};
