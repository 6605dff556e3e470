//! What can go wrong between a text and its vectors.

use std::path::PathBuf;

/// Why a model could not be opened or run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The ONNX file is missing, damaged or uses an operator that the runtime lacks.
    #[error("model {path} cannot be loaded: {reason}")]
    Model {
        /// The file that was read.
        path: PathBuf,
        /// What the runtime said.
        reason: String,
    },
    /// The tokenizer file is missing or damaged.
    #[error("tokenizer {path} cannot be loaded: {reason}")]
    Tokenizer {
        /// The file that was read.
        path: PathBuf,
        /// What the tokenizer said.
        reason: String,
    },
    /// A text could not be cut into word pieces.
    #[error("text cannot be tokenised: {0}")]
    Tokenise(String),
    /// The model does not have the inputs and outputs of a sentence encoder, or gave a tensor of another shape.
    #[error("model does not fit its description: {0}")]
    Shape(String),
    /// The runtime failed on an operator.
    #[error("inference failed: {0}")]
    Inference(String),
    /// A projection file is damaged, of another version, or does not fit the vectors it is given.
    #[error("projection is not usable: {0}")]
    Projection(String),
}

impl Error {
    /// The model's hidden state has another width than its description says.
    pub(crate) fn dimensions(found: usize, expected: usize) -> Self {
        Self::Shape(format!(
            "hidden state has {found} dimensions, expected {expected}"
        ))
    }
}
