//! Why a body is not read, and where in it.

use thiserror::Error;

/// A body that is refused. Nothing of its content is in the message, only the names of known fields and of repeated keys.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{path}: {reason}", path = if path.is_empty() { "body" } else { path })]
pub struct Malformed {
    /// Where, such as `messages[3].content`; empty for the body as a whole.
    pub path: String,
    /// What is wrong there.
    pub reason: Reason,
}

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Reason {
    /// Not UTF-8 from this byte on.
    #[error("not UTF-8 from byte {0} on")]
    NotUtf8(usize),
    /// It begins with a byte order mark, which JSON does not allow.
    #[error("begins with a byte order mark")]
    ByteOrderMark,
    /// Not JSON.
    #[error("not JSON at line {line}, column {column}")]
    NotJson {
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
    },
    /// Arrays and objects nested deeper than any reader can be expected to follow.
    #[error("nested deeper than {0} levels")]
    TooDeep(usize),
    /// A key stands twice in an object, so that two readers may see different values.
    #[error("the key {0:?} stands there twice")]
    DuplicateKey(String),
    /// A string or key with half of a surrogate pair: it has no text.
    #[error("holds half of a surrogate pair")]
    LoneSurrogate,
    /// A field that must be there is not.
    #[error("is missing")]
    Missing,
    /// `null` where there must be content (AMP item 12).
    #[error("is null")]
    Null,
    /// Of another type than can be read.
    #[error("is not {0}")]
    NotA(&'static str),
    /// One event of a stream is longer than is held in memory.
    #[error("an event is longer than {0} bytes")]
    TooLong(usize),
}

impl Malformed {
    pub(crate) fn here(reason: Reason) -> Self {
        Self {
            path: String::new(),
            reason,
        }
    }

    /// The same, seen from the object whose member `name` it is in.
    pub(crate) fn within(mut self, name: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') {
            ""
        } else {
            "."
        };
        self.path = format!("{name}{dot}{}", self.path);
        self
    }

    /// The same, seen from the array whose element `index` it is in.
    pub(crate) fn at(self, index: usize) -> Self {
        self.within(&format!("[{index}]"))
    }
}
