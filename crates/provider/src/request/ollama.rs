//! Ollama `/api/chat`. Content is always a string, pictures stand beside it, calls have arguments as an object and often no id.

use super::openai_chat::tool_name;
use super::reading::{self, call, result};
use crate::conversation::{Content, Conversation, Hints, Message, Part, PartKind, Role, Shape};
use crate::json::{Node, Object};
use crate::layout::{Choice, Layout, List, Slot};
use crate::malformed::Malformed;
use std::borrow::Cow;

pub(super) fn read<'a>(root: &Object<'a>) -> Result<(Conversation<'a>, Layout), Malformed> {
    let array = root.required("messages")?;
    let elements = array.elements().map_err(|error| error.within("messages"))?;
    let (messages, contents) = reading::each("messages", &elements, message)?;
    let (tools, tool_layout) = reading::tools(root, tool_name)?;
    let options = root.child("options")?;
    let option = |name: &str| options.as_ref()?.get(name)?.unsigned();
    let conversation = Conversation {
        model: root.text("model"),
        messages,
        tools,
        // Ollama streams unless it is told not to.
        streams: root.get("stream").is_none_or(Node::is_true),
        max_output_tokens: option("num_predict"),
        window_tokens: option("num_ctx"),
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
        choice: Choice::Absent,
    };
    Ok((conversation, layout))
}

fn message<'a>(object: &Object<'a>) -> Result<(Message<'a>, Slot), Malformed> {
    let role = reading::role(object)?;
    let (mut content, slot) = text(object, role)?;
    if role == Role::Tool {
        let text = content.parts.pop().and_then(|part| part.text);
        let name = object.text("tool_name").or_else(|| object.text("name"));
        content.parts = vec![result(object.text("tool_call_id"), name, text)];
    }
    for _ in object.list("images")? {
        content.parts.push(Part::of(PartKind::Image));
    }
    if let Some(text) = object.text("thinking") {
        content.parts.push(Part {
            kind: PartKind::Reasoning,
            ..Part::text(text)
        });
    }
    for (index, element) in object.list("tool_calls")?.into_iter().enumerate() {
        let place = |error: Malformed| error.at(index).within("tool_calls");
        let tool = element.object().map_err(place)?;
        let function = tool.child("function").map_err(place)?;
        let name = function.as_ref().and_then(|function| function.text("name"));
        let arguments = function
            .as_ref()
            .and_then(|function| function.get("arguments"))
            .map(|arguments| Cow::Borrowed(arguments.raw()));
        content.parts.push(call(tool.text("id"), name, arguments));
    }
    Ok((Message { role, content }, slot))
}

fn text<'a>(object: &Object<'a>, role: Role) -> Result<(Content<'a>, Slot), Malformed> {
    if matches!(role, Role::Assistant | Role::Other) && object.present("content").is_none() {
        let empty = Content {
            shape: Shape::Absent,
            parts: Vec::new(),
        };
        return Ok((empty, Slot::Absent));
    }
    let value = object.required("content")?;
    let text = value.string().map_err(|error| error.within("content"))?;
    Ok((Content::text(text), Slot::Text(value.range())))
}
