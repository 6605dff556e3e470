//! Counting tokens by the name of a tokenizer.
//!
//! A [`Tokenizer`] is a name and something that counts; [`Tokenizers`] holds the built-in ones and those of configured files. What
//! a block adds to a prompt is counted at the seam, where tokens of both sides may merge.

mod approximate;
mod encoding;
mod file;
mod registry;

pub use file::Unreadable as UnreadableTokenizer;
pub use registry::{Tokenizers, TokenizersError};

use encoding::Encoding;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// Anything that counts the tokens of a text: the same text gives the same number.
pub trait Count: Send + Sync {
    /// The tokens of a text; special tokens in it are read as plain text.
    fn count(&self, text: &str) -> usize;
}

/// Counts the tokens of text. Cheap to clone and shareable between threads.
#[derive(Clone)]
pub struct Tokenizer {
    name: Arc<str>,
    counter: Arc<dyn Count>,
    approximate: bool,
    /// How many bytes before a seam are looked at for where a token surely ends.
    reach: usize,
    due: Option<Instant>,
}

/// A tokenizer name that is not built in.
#[derive(Debug, thiserror::Error)]
#[error("unknown tokenizer `{0}`; known are {known}", known = Tokenizer::NAMES.join(", "))]
pub struct UnknownTokenizer(String);

/// A byte-pair encoding whose words are cut before they are merged: nothing that ends before a space reaches over it.
const REACH_OF_WORDS: usize = 64;
/// What is known of a tokenizer file's cuts is little.
const REACH_OF_FILES: usize = 4096;

impl Tokenizer {
    /// The built-in names.
    pub const NAMES: [&'static str; 6] = [
        "o200k_base",
        "cl100k_base",
        "p50k_base",
        "r50k_base",
        "approximate",
        "bytes",
    ];

    /// A built-in tokenizer. The vocabularies (about 70 MB for `o200k_base` and `cl100k_base` together) load on first use.
    ///
    /// Two are for models whose tokenizer is not public. `approximate` is an upper bound with a margin that was measured on other
    /// models' tokenizers (AMP item 78). `bytes` is a token a byte: every byte-level tokenizer gives at least one byte to a
    /// token, so this is the only bound that no text can break; it is 3 to 5 times too high for prose.
    pub fn named(name: &str) -> Result<Self, UnknownTokenizer> {
        let (counter, reach): (Arc<dyn Count>, usize) = match name {
            "approximate" => (Arc::new(approximate::UpperBound::new()), 0),
            "bytes" => (Arc::new(Bytes), 0),
            _ => match Encoding::named(name) {
                Some(encoding) => (Arc::new(encoding), REACH_OF_WORDS),
                None => return Err(UnknownTokenizer(name.to_owned())),
            },
        };
        Ok(Self {
            name: name.into(),
            counter,
            approximate: Self::is_bound(name),
            reach,
            due: None,
        })
    }

    /// The same until this time; later it takes each text for a token a byte, unread. For work whose answer is of no use any more by then,
    /// and which cannot be cut off.
    #[must_use]
    pub fn until(self, due: Instant) -> Self {
        Self {
            due: Some(due),
            ..self
        }
    }

    /// Whether the built-in tokenizer of this name gives upper bounds rather than a model's own counts. No other does.
    pub fn is_bound(name: &str) -> bool {
        ["approximate", "bytes"].contains(&name)
    }

    /// A tokenizer that counts in a way of the caller's own.
    pub fn counting(name: &str, counter: Arc<dyn Count>) -> Self {
        Self {
            name: name.into(),
            counter,
            approximate: false,
            reach: REACH_OF_FILES,
            due: None,
        }
    }

    /// The name it was asked for.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether its counts are upper bounds rather than a model's own.
    pub fn is_approximate(&self) -> bool {
        self.approximate
    }

    /// The tokens of a text; special tokens in it are read as plain text.
    pub fn count(&self, text: &str) -> usize {
        match self.due {
            Some(due) if Instant::now() >= due => text.len(),
            _ => self.counter.count(text),
        }
    }

    /// The tokens by which a text grows when `addition` is put after it: those of both together less those of `before` (AMP item
    /// 64). Tokens may merge at the seam, so this is not the count of `addition`. Of `before` only the end is looked at. An
    /// approximate tokenizer gives its bound for `addition`: bounds cannot be taken from each other.
    pub fn added(&self, before: &str, addition: &str) -> usize {
        if self.approximate || before.is_empty() {
            return self.count(addition);
        }
        let end = &before[seam(before, self.reach)..];
        let both = [end, addition].concat();
        self.count(&both).saturating_sub(self.count(end))
    }
}

/// Where the end of a text begins: at the last word end that is at least `reach` bytes before it and has a space behind it.
fn seam(text: &str, reach: usize) -> usize {
    let far = text.floor_char_boundary(text.len().saturating_sub(reach));
    encoding::word_end(&text[..far]).unwrap_or(0)
}

struct Bytes;

impl Count for Bytes {
    fn count(&self, text: &str) -> usize {
        text.len()
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Tokenizer")
            .field(&self.name)
            .finish()
    }
}

#[cfg(test)]
mod tests;
