//! A provider's request: read once, edited as bytes.

mod anthropic;
mod gemini;
mod ollama;
mod openai_chat;
mod openai_responses;
mod reading;

use crate::Format;
use crate::conversation::Conversation;
use crate::edit::{self, Edit, Inapplicable};
use crate::json::Node;
use crate::layout::Layout;
use crate::malformed::Malformed;

/// A request that was read, with the bytes that it was read from.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    format: Format,
    text: &'a str,
    conversation: Conversation<'a>,
    layout: Layout,
}

impl<'a> Request<'a> {
    /// Reads a request. Fields and parts that are not known are let be; what is read must be of its type, in objects that have each key
    /// once. Time and memory grow with the size of the body, which the caller bounds.
    pub fn parse(format: Format, body: &'a [u8]) -> Result<Self, Malformed> {
        let text = Node::document(body)?;
        let root = text.object()?;
        let (conversation, layout) = match format {
            Format::OpenaiChat => openai_chat::read(&root),
            Format::OpenaiResponses => openai_responses::read(&root),
            Format::AnthropicMessages => anthropic::read(&root),
            Format::Gemini => gemini::read(&root),
            Format::OllamaChat => ollama::read(&root),
        }?;
        Ok(Self {
            format,
            text: std::str::from_utf8(body).expect("a document is UTF-8"),
            conversation,
            layout,
        })
    }

    /// What it says.
    pub fn conversation(&self) -> &Conversation<'a> {
        &self.conversation
    }

    /// Its shape.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The body with the edits made, in any order; indexes are those of this request. All bytes that no edit names are what they were.
    pub fn apply(&self, edits: &[Edit]) -> Result<Vec<u8>, Inapplicable> {
        edit::apply(self.format, self.text, &self.layout, edits)
    }
}
