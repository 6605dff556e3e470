//! Counting tokens by the name of a tokenizer.

use std::fmt;
use std::sync::Arc;
use tiktoken_rs::CoreBPE;

/// Counts the tokens of text. Cheap to clone and shareable between threads.
#[derive(Clone)]
pub struct Tokenizer {
    name: Arc<str>,
    counter: Counter,
}

#[derive(Clone)]
enum Counter {
    Tiktoken(&'static CoreBPE),
    Bytes,
}

/// A tokenizer name that is not built in.
#[derive(Debug, thiserror::Error)]
#[error("unknown tokenizer `{0}`; known are o200k_base, cl100k_base and bytes")]
pub struct UnknownTokenizer(String);

impl Tokenizer {
    /// The built-in names.
    pub const NAMES: [&'static str; 3] = ["o200k_base", "cl100k_base", "bytes"];

    /// A built-in tokenizer. The vocabularies of `o200k_base` and `cl100k_base` (about 70 MB together) load on first use.
    ///
    /// `bytes` is for models whose tokenizer is not public: a token a byte. Every byte-level tokenizer gives at least one
    /// byte to a token, so this is the only bound that no text can break; it is 3 to 5 times too high for prose.
    pub fn named(name: &str) -> Result<Self, UnknownTokenizer> {
        let counter = match name {
            "o200k_base" => Counter::Tiktoken(tiktoken_rs::o200k_base_singleton()),
            "cl100k_base" => Counter::Tiktoken(tiktoken_rs::cl100k_base_singleton()),
            "bytes" => Counter::Bytes,
            _ => return Err(UnknownTokenizer(name.to_owned())),
        };
        Ok(Self {
            name: name.into(),
            counter,
        })
    }

    /// The name it was asked for.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tokens of a text; special tokens in it are read as plain text.
    pub fn count(&self, text: &str) -> usize {
        match &self.counter {
            Counter::Tiktoken(encoding) => encoding.encode_ordinary(text).len(),
            Counter::Bytes => text.len(),
        }
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
mod tests {
    use super::*;

    #[test]
    fn names_give_their_tokenizer_and_others_an_error() {
        for name in Tokenizer::NAMES {
            assert_eq!(Tokenizer::named(name).unwrap().name(), name);
        }
        assert_eq!(
            Tokenizer::named("o200k_base").unwrap().count("hello world"),
            2
        );
        assert_eq!(Tokenizer::named("bytes").unwrap().count("héllo"), 6);
        let unknown = Tokenizer::named("p50k").unwrap_err().to_string();
        assert!(unknown.contains("p50k"), "{unknown}");
    }

    #[test]
    fn special_tokens_in_text_are_plain_text() {
        assert!(
            Tokenizer::named("o200k_base")
                .unwrap()
                .count("<|endoftext|>")
                > 1
        );
    }

    #[test]
    fn long_runs_of_one_character_are_counted() {
        for name in Tokenizer::NAMES {
            let tokenizer = Tokenizer::named(name).unwrap();
            for unit in [" ", "a", "\n", "é", "! "] {
                assert!(tokenizer.count(&unit.repeat(65_536 / unit.len())) > 0);
            }
        }
    }
}
