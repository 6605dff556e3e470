//! A streamed reply put together: the same [`Reply`] that the provider would have given in one piece.
//!
//! Where a stream has a message in pieces, its bytes are made here; whole items, blocks and parts keep theirs.

mod anthropic;
mod gemini;
mod ollama;
mod openai_chat;
mod openai_responses;

use super::Frame;
use crate::Format;
use crate::json::{Node, Object};
use crate::malformed::Malformed;
use crate::reply::Reply;

/// Takes frames and gives a reply.
#[derive(Clone, Debug)]
pub struct Assembler {
    format: Format,
    partial: Partial,
    known: bool,
    failed: bool,
}

#[derive(Clone, Debug)]
enum Partial {
    Chat(openai_chat::Partial),
    Responses(openai_responses::Partial),
    Anthropic(anthropic::Partial),
    Gemini(gemini::Partial),
    Ollama(ollama::Partial),
}

impl Assembler {
    /// An assembler at the beginning of a stream.
    pub fn new(format: Format) -> Self {
        let partial = match format {
            Format::OpenaiChat => Partial::Chat(openai_chat::Partial::default()),
            Format::OpenaiResponses => Partial::Responses(openai_responses::Partial::default()),
            Format::AnthropicMessages => Partial::Anthropic(anthropic::Partial::default()),
            Format::Gemini => Partial::Gemini(gemini::Partial::default()),
            Format::OllamaChat => Partial::Ollama(ollama::Partial::default()),
        };
        Self {
            format,
            partial,
            known: false,
            failed: false,
        }
    }

    /// Takes the next frame. Comments, pings and events that are not known are passed over.
    pub fn push(&mut self, frame: &Frame) -> Result<(), Malformed> {
        let Some(data) = frame.data.as_deref().filter(|data| is_object(data)) else {
            return Ok(());
        };
        let root = Node::of_text(data)?.object()?;
        if is_error(&root) {
            self.failed = true;
            return Ok(());
        }
        self.known |= is_of(self.format, &root);
        match &mut self.partial {
            Partial::Chat(partial) => partial.push(&root),
            Partial::Responses(partial) => partial.push(&root),
            Partial::Anthropic(partial) => partial.push(&root),
            Partial::Gemini(partial) => partial.push(&root),
            Partial::Ollama(partial) => partial.push(&root),
        }
    }

    /// Whether the provider reported an error in the stream (AMP item 40). What came before it is still there.
    pub fn failed(&self) -> bool {
        self.failed
    }

    /// Whether anything came that this provider sends: else it was no stream, or another provider's.
    pub fn known(&self) -> bool {
        self.known || self.failed
    }

    /// The reply, as far as the stream went. [`crate::reply::Finish::Unknown`] tells that it broke off.
    pub fn finish(self) -> Result<Reply, Malformed> {
        match self.partial {
            Partial::Chat(partial) => Ok(partial.finish()),
            Partial::Responses(partial) => partial.finish(),
            Partial::Anthropic(partial) => partial.finish(),
            Partial::Gemini(partial) => Ok(partial.finish()),
            Partial::Ollama(partial) => Ok(partial.finish()),
        }
    }
}

/// Whether a frame has what those of the provider have.
fn is_of(format: Format, root: &Object<'_>) -> bool {
    let kind = root.text("type");
    let has = |name: &str| root.present(name).is_some();
    match format {
        Format::OpenaiChat => has("choices"),
        Format::OpenaiResponses => kind.is_some_and(|it| it.starts_with("response.")),
        Format::AnthropicMessages => {
            let starts = ["message", "content_block", "ping"];
            kind.is_some_and(|it| starts.iter().any(|start| it.starts_with(start)))
        }
        Format::Gemini => has("candidates") || has("usageMetadata") || has("promptFeedback"),
        Format::OllamaChat => has("message") || has("done"),
    }
}

pub(super) fn is_object(data: &str) -> bool {
    data.trim_start().starts_with('{')
}

/// All providers tell of an error in a member of this name, or in an event of this type.
pub(super) fn is_error(root: &Object<'_>) -> bool {
    let kind = root.text("type");
    matches!(kind.as_deref(), Some("error" | "response.failed"))
        || kind.is_none() && root.present("error").is_some()
}
