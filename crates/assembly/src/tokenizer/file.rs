//! Tokenizers of models that publish theirs, as a `tokenizer.json` of Hugging Face.

use super::{Count, REACH_OF_FILES, Tokenizer};
use std::path::Path;
use std::sync::Arc;

impl Tokenizer {
    /// Reads a `tokenizer.json`. Its truncation, padding and special tokens are left off: texts are counted as they stand.
    pub fn from_file(name: &str, path: &Path) -> Result<Self, Unreadable> {
        let unreadable = |error: tokenizers::Error| Unreadable(error.to_string());
        let mut tokenizer = tokenizers::Tokenizer::from_file(path).map_err(unreadable)?;
        tokenizer.with_truncation(None).map_err(unreadable)?;
        tokenizer.with_padding(None);
        Ok(Self {
            name: name.into(),
            counter: Arc::new(File(tokenizer)),
            approximate: false,
            reach: REACH_OF_FILES,
            due: None,
        })
    }
}

/// Why a tokenizer file cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(String);

struct File(tokenizers::Tokenizer);

impl Count for File {
    fn count(&self, text: &str) -> usize {
        // A text that it cannot encode has no more tokens than bytes.
        self.0
            .encode_fast(text, false)
            .map_or(text.len(), |encoding| encoding.len())
    }
}
