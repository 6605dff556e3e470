//! `OpenAI` chat completions. The system prompt is messages of role system or developer.

use super::reading::{self, call, result};
use crate::conversation::{Conversation, Hints, Message, Part, PartKind, Role};
use crate::json::{Node, Object};
use crate::layout::{Layout, List, Slot};
use crate::malformed::Malformed;
use std::borrow::Cow;

pub(super) fn read<'a>(root: &Object<'a>) -> Result<(Conversation<'a>, Layout), Malformed> {
    let array = root.required("messages")?;
    let elements = array.elements().map_err(|error| error.within("messages"))?;
    let (messages, contents) = reading::each("messages", &elements, message)?;
    let (tools, tool_layout) = reading::tools(root, tool_name)?;
    let (tool_choice, choice) = reading::worded_choice(root);
    let most = root.present("max_completion_tokens");
    let conversation = Conversation {
        model: root.text("model"),
        messages,
        tools,
        tool_choice,
        streams: root.get("stream").is_some_and(Node::is_true),
        candidates: root.get("n").and_then(Node::unsigned).unwrap_or(0),
        max_output_tokens: most
            .or_else(|| root.present("max_tokens"))
            .and_then(Node::unsigned),
        hints: Hints {
            session: reading::session_in_metadata(root),
            previous_reply: None,
        },
        ..Conversation::default()
    };
    let layout = Layout {
        root: List::of_object(root),
        system: Slot::Absent,
        messages: Slot::List(List::of_array(array, &elements)),
        contents,
        tools: tool_layout,
        choice,
    };
    Ok((conversation, layout))
}

/// The name of a function, nested as chat completions and Ollama have it.
pub(super) fn tool_name<'a>(tool: &Object<'a>) -> Option<Cow<'a, str>> {
    let kind = tool.text("type").unwrap_or(Cow::Borrowed("function"));
    tool.child(&kind).ok()??.text("name")
}

fn message<'a>(object: &Object<'a>) -> Result<(Message<'a>, Slot), Malformed> {
    let role = reading::role(object)?;
    let optional = matches!(role, Role::Assistant | Role::Other);
    let (mut content, slot) = reading::content(object, "content", optional, part)?;
    if role == Role::Tool {
        let text = content.texts().collect::<Vec<_>>().join("\n");
        let id = object.text("tool_call_id");
        content.parts = vec![result(id, object.text("name"), Some(Cow::Owned(text)))];
    }
    content.parts.extend(object.text("refusal").map(Part::text));
    for name in ["reasoning_content", "reasoning"] {
        if let Some(text) = object.text(name) {
            content.parts.push(Part {
                kind: PartKind::Reasoning,
                ..Part::text(text)
            });
        }
    }
    for (index, element) in object.list("tool_calls")?.into_iter().enumerate() {
        let place = |error: Malformed| error.at(index).within("tool_calls");
        let tool = element.object().map_err(place)?;
        let kind = tool.text("type").unwrap_or(Cow::Borrowed("function"));
        let function = tool.child(&kind).map_err(place)?;
        let name = function.as_ref().and_then(|function| function.text("name"));
        let arguments = function.as_ref().and_then(|function| {
            function
                .text("arguments")
                .or_else(|| function.text("input"))
        });
        content.parts.push(call(tool.text("id"), name, arguments));
    }
    Ok((Message { role, content }, slot))
}

fn part<'a>(object: &Object<'a>, kind: &str) -> Part<'a> {
    if let (true, Some(text)) = (kind == "refusal", object.text("refusal")) {
        return Part::text(text);
    }
    Part::of(match kind {
        "text" => PartKind::Text,
        "image_url" => PartKind::Image,
        "input_audio" => PartKind::Audio,
        "file" => PartKind::Document,
        _ => PartKind::Opaque,
    })
}
