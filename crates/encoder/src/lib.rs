//! Texts to vectors on CPU: one sentence vector and one vector for every word piece, from any BERT-family
//! ONNX model. Pure: files in, tensors out. Queueing, batching over requests and cancellation belong to the
//! embedder service; fetching models belongs to `memfleet-models`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod batch;
mod bert;
mod encoder;
mod error;
mod fitted;
mod graph;
mod pooling;
pub mod projection;
pub mod quantise;
mod tokenizer;
mod tokens;
mod vectors;

pub use bert::{BertLayout, instructions, product_rate};
pub use encoder::{Encoder, ModelFiles, Spec};
pub use error::Error;
pub use fitted::FittedEncoder;
pub use pooling::Pooling;
pub use tokenizer::{ModelTokenizer, compact_tokenizer};
pub use tokens::{TextPiece, Tokens};
pub use vectors::{Encoding, TokenVectors};
