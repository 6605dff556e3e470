//! Reader of turns, fitted on the understanding corpus: the statements of a turn with their kinds
//! and owners, what a later statement does to an earlier one, and which remembered lines a prompt
//! needs. One encoder with three sets of heads; it shares the lower layers and the word vectors of
//! an embedding model. Pure: texts in, probabilities out.
//!
//! `training/` makes the weights (`data/reader.onnx`) from the corpus in
//! `crates/evaluation/data/understanding`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod check;
mod heads;
mod needs;
mod reader;
mod relations;
mod sequences;
mod statements;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use needs::PromptVector;
pub use reader::{BetweenLayers, ReaderError, ReaderModel};
pub use relations::{PlacedStatements, TurnPair};
pub use sequences::ReadTurn;
pub use statements::TurnToRead;
