//! What a frame is, as far as the screen has to know.

use crate::Format;
use crate::json::{Node, Object};
use crate::malformed::Malformed;
use crate::stream::Frame;
use crate::stream::assembler::{is_error, is_object};
use crate::stream::numbering::{self, Numbering};
use crate::tools::Names;

/// What is in a frame.
#[derive(Clone, Debug, Default)]
pub(super) struct Look {
    pub(super) kind: Kind,
    /// It begins a block of content that has a number.
    pub(super) opens_block: bool,
    pub(super) calls_memory: bool,
    pub(super) calls_client: bool,
    /// Bytes of text that a user reads.
    pub(super) text: usize,
    /// Numbers of memory's calls that begin here.
    pub(super) dropped: Vec<u64>,
    /// The numbers of the calls in a chunk of a chat completion, in its order.
    pub(super) calls: Vec<u64>,
}

/// What a frame is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// A comment or a ping: it says nothing and keeps the connection open.
    Ping,
    /// The provider failed.
    Error,
    /// It opens the reply and says nothing yet.
    Opening,
    /// It tells why the reply ended, what it cost, or that nothing follows.
    Closing,
    /// Anything else.
    #[default]
    Content,
}

/// Looks at a frame. One that cannot be read says nothing of memory and is let pass.
pub(super) fn look(
    format: Format,
    names: &Names,
    numbering: &mut Numbering,
    frame: &Frame,
) -> Look {
    let Some(data) = frame.data.as_deref() else {
        return Look::of(Kind::Ping);
    };
    if !is_object(data) {
        let is_done = data.trim() == "[DONE]";
        return Look::of(if is_done {
            Kind::Closing
        } else {
            Kind::Content
        });
    }
    let Ok(root) = Node::of_text(data).and_then(Node::object) else {
        return Look::default();
    };
    if is_error(&root) {
        return Look::of(Kind::Error);
    }
    let look = match format {
        Format::OpenaiChat => chat(&root, names, numbering),
        Format::OpenaiResponses => responses(&root, names),
        Format::AnthropicMessages => anthropic(&root, names),
        Format::Gemini => gemini(&root, names),
        Format::OllamaChat => ollama(&root, names),
    };
    look.unwrap_or_default()
}

impl Look {
    fn of(kind: Kind) -> Self {
        Self {
            kind,
            ..Self::default()
        }
    }

    fn close_if(&mut self, closes: bool) {
        if closes {
            self.kind = Kind::Closing;
        }
    }

    fn call(&mut self, names: &Names, name: &str, number: Option<u64>) {
        if names.contains(name) {
            self.calls_memory = true;
            self.dropped.extend(number);
        } else {
            self.calls_client = true;
        }
    }
}

fn chat(root: &Object<'_>, names: &Names, numbering: &mut Numbering) -> Result<Look, Malformed> {
    let mut look = Look::default();
    let choices = root.list("choices")?;
    look.close_if(choices.is_empty() && root.present("usage").is_some());
    for choice in choices {
        let choice = choice.object()?;
        look.close_if(choice.present("finish_reason").is_some());
        let Some(delta) = choice.child("delta")? else {
            continue;
        };
        look.text += delta.text("content").map_or(0, |text| text.len());
        let calls = delta.list("tool_calls")?;
        let opens = delta.get("role").is_some() && look.text == 0 && calls.is_empty();
        if opens && look.kind == Kind::Content {
            look.kind = Kind::Opening;
        }
        for call in calls {
            let call = call.object()?;
            let number = numbering.of(&call);
            look.calls.push(number);
            if let Some(name) = numbering::name(&call) {
                look.call(names, &name, Some(number));
            }
        }
    }
    Ok(look)
}

fn responses(root: &Object<'_>, names: &Names) -> Result<Look, Malformed> {
    let mut look = Look::default();
    match root.text("type").as_deref() {
        Some("response.created" | "response.in_progress" | "response.queued") => {
            look.kind = Kind::Opening;
        }
        Some("response.completed" | "response.incomplete") => look.kind = Kind::Closing,
        Some("response.output_text.delta") => {
            look.text = root.text("delta").map_or(0, |text| text.len());
        }
        Some("response.output_item.added") => {
            look.opens_block = true;
            let item = root.child("item")?;
            let name = item
                .filter(|item| {
                    item.text("type")
                        .is_some_and(|kind| kind.ends_with("_call"))
                })
                .and_then(|item| item.text("name"));
            if let Some(name) = name {
                let number = root.get("output_index").and_then(Node::unsigned);
                look.call(names, &name, number);
            }
        }
        _ => {}
    }
    Ok(look)
}

fn anthropic(root: &Object<'_>, names: &Names) -> Result<Look, Malformed> {
    let mut look = Look::default();
    match root.text("type").as_deref() {
        Some("ping") => look.kind = Kind::Ping,
        Some("message_start") => look.kind = Kind::Opening,
        Some("message_delta" | "message_stop") => look.kind = Kind::Closing,
        Some("content_block_delta") => {
            let text = root.child("delta")?.and_then(|delta| delta.text("text"));
            look.text = text.map_or(0, |text| text.len());
        }
        Some("content_block_start") => {
            look.opens_block = true;
            let block = root.child("content_block")?;
            let call = block.filter(|block| block.text("type").as_deref() == Some("tool_use"));
            if let Some(name) = call.and_then(|block| block.text("name")) {
                look.call(names, &name, root.get("index").and_then(Node::unsigned));
            }
        }
        _ => {}
    }
    Ok(look)
}

fn gemini(root: &Object<'_>, names: &Names) -> Result<Look, Malformed> {
    let mut look = Look::default();
    let Some(candidate) = root.list("candidates")?.first().copied() else {
        return Ok(look);
    };
    let candidate = candidate.object()?;
    look.close_if(candidate.present("finishReason").is_some());
    let Some(content) = candidate.child("content")? else {
        return Ok(look);
    };
    for part in content.list("parts")? {
        let part = part.object()?;
        let is_thought = part.get("thought").is_some_and(Node::is_true);
        if let Some(text) = part.text("text").filter(|_| !is_thought) {
            look.text += text.len();
        }
        if let Some(call) = part.child("functionCall")? {
            look.call(names, &call.text("name").unwrap_or_default(), None);
        }
    }
    Ok(look)
}

fn ollama(root: &Object<'_>, names: &Names) -> Result<Look, Malformed> {
    let mut look = Look::default();
    look.close_if(root.get("done").is_some_and(Node::is_true));
    if let Some(message) = root.child("message")? {
        look.text = message.text("content").map_or(0, |text| text.len());
        for call in message.list("tool_calls")? {
            let function = call.object()?.child("function")?;
            let name = function.and_then(|function| function.text("name"));
            look.call(names, &name.unwrap_or_default(), None);
        }
    }
    Ok(look)
}
