//! Edits of a request, and how they are spliced into its bytes.
//!
//! Edits name places of the request as it was read, so their order does not matter and several can be made at once.

mod editor;
mod neutral;
mod splice;

pub(crate) use editor::apply;
pub(crate) use splice::Splices;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Content that an edit adds to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The field of the system prompt.
    System,
    /// The message of this index.
    Message(usize),
}

/// One edit. The first four are what an edit plan tells a caller; the others serve whoever drives the calls of a model itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edit {
    /// Content that is a string gets this after its text.
    AppendText {
        /// Where.
        place: Place,
        /// Separator and block.
        text: String,
    },
    /// Content that is a list gets a text part after its parts, so that no part with a cache marker changes (AMP items 3, 4, 18).
    AppendPart {
        /// Where.
        place: Place,
        /// The part's text.
        text: String,
    },
    /// A system prompt is made where there is none: a first message, or the field (AMP item 16).
    InsertSystem {
        /// Its text.
        text: String,
    },
    /// A tool is added after the client's; the list of tools is made where there is none.
    AddTool {
        /// The definition in the provider's shape: what an element of the list is, of Gemini a function declaration.
        definition: String,
    },
    /// The tool of this name is taken away, with the list if it was the last (AMP item 35).
    RemoveTool {
        /// Its name.
        name: String,
    },
    /// The model may call no tool (AMP item 23).
    ForbidTools,
    /// Messages in the provider's shape come before the one at `at`, or last where `at` is the number of messages.
    InsertMessages {
        /// The index.
        at: usize,
        /// As JSON.
        messages: Vec<String>,
    },
    /// A message gives way to these, or goes where there are none.
    ReplaceMessage {
        /// The index.
        at: usize,
        /// As JSON.
        messages: Vec<String>,
    },
    /// Parts in the provider's shape come before those of a message.
    PrependParts {
        /// The index of the message.
        message: usize,
        /// As JSON.
        parts: Vec<String>,
    },
}

/// An edit that this request has no place for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Inapplicable {
    /// No such message.
    #[error("there is no message {0}")]
    NoMessage(usize),
    /// The content is not a string, for text, or not a list, for a part.
    #[error("the content of {0:?} has another shape")]
    Shape(Place),
    /// There is a system prompt already.
    #[error("there is a system prompt already")]
    SystemExists,
    /// No such tool.
    #[error("there is no tool {0:?}")]
    NoTool(String),
    /// The format cannot forbid tools; take them away.
    #[error("this format cannot forbid tools")]
    CannotForbid,
    /// A message, part or definition is not JSON.
    #[error("what is to be added is not JSON")]
    NotJson,
    /// The edit is of bytes, and there are none.
    #[error("this edit is of bytes")]
    OnlyBytes,
    /// Two edits touch the same bytes.
    #[error("two edits touch the same bytes")]
    Conflict,
}
