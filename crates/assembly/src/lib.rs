//! Assembly: choosing and rendering memory inside a token budget.
//!
//! [`assemble()`] takes ranked candidates and gives a block of text that never exceeds the budget, counted as a whole with
//! a named [`Tokenizer`]. It drops duplicates, cuts long items to their relevant sentences, orders them, and renders
//! stored text so that it can forge neither an item nor the end of the block, as [`parse()`] proves. [`budget`] says how many tokens there are.
//! Pure: no store, no model, no clock.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod assemble;
mod block;
pub mod budget;
mod candidate;
mod common;
mod containment;
mod duplicates;
mod echo;
mod excerpt;
mod hash;
mod options;
mod overlap;
mod parse;
mod profile;
mod provenance;
mod ranking;
mod relevance;
mod render;
pub mod sanitise;
mod selection;
mod template;
mod tokenizer;
mod truncate;
mod weights;

pub use assemble::assemble;
pub use block::{Block, Empty, Extent, Item, LeftOut, Reason, Trace};
pub use candidate::{Candidate, Granularity, Outdated, Trust, Validity};
pub use containment::{Prompt, contains};
pub use duplicates::Said;
pub use echo::{Echo, Sources};
pub use options::{Enclosure, Nonce, Options, Order, Place, Untrusted};
pub use parse::{ParsedItem, parse};
pub use profile::{ProfileLine, ProfileSection, ShownLine, profile_section};
pub use provenance::Provenance;
pub use relevance::SentenceScorer;
pub use template::{InvalidTemplate, Template};
pub use tokenizer::{
    Count, Tokenizer, Tokenizers, TokenizersError, UnknownTokenizer, UnreadableTokenizer,
};
pub use weights::Weights;
