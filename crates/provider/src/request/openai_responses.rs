//! `OpenAI` responses. The input is a string, or a list of items of which messages are only one kind.

use super::reading::{self, call, result};
use crate::conversation::{Content, Conversation, Hints, Message, Part, PartKind, Role, Shape};
use crate::json::{Node, Object};
use crate::layout::{Layout, List, Slot};
use crate::malformed::{Malformed, Reason};
use std::borrow::Cow;

pub(super) fn read<'a>(root: &Object<'a>) -> Result<(Conversation<'a>, Layout), Malformed> {
    let (system, system_slot) = instructions(root)?;
    let (messages, contents, input) = input(root)?;
    let (tools, tool_layout) = reading::tools(root, |tool| tool.text("name"))?;
    let (tool_choice, choice) = reading::worded_choice(root);
    let conversation = Conversation {
        model: root.text("model"),
        system,
        system_field: true,
        messages,
        tools,
        tool_choice,
        streams: root.get("stream").is_some_and(Node::is_true),
        max_output_tokens: root.get("max_output_tokens").and_then(Node::unsigned),
        hints: Hints {
            session: conversation_id(root).or_else(|| reading::session_in_metadata(root)),
            previous_reply: root.text("previous_response_id"),
        },
        ..Conversation::default()
    };
    let layout = Layout {
        root: List::of_object(root),
        system: system_slot,
        messages: input,
        contents,
        tools: tool_layout,
        choice,
    };
    Ok((conversation, layout))
}

/// `conversation` is an id, or an object with one.
fn conversation_id<'a>(root: &Object<'a>) -> Option<Cow<'a, str>> {
    let by_object = root.child("conversation").ok().flatten();
    root.text("conversation")
        .or_else(|| by_object.and_then(|object| object.text("id")))
}

fn instructions<'a>(root: &Object<'a>) -> Result<(Option<Content<'a>>, Slot), Malformed> {
    match root.get("instructions") {
        None => Ok((None, Slot::Absent)),
        Some(value) if value.is_null() => Ok((None, Slot::Null(value.range()))),
        Some(value) => {
            let text = value
                .string()
                .map_err(|error| error.within("instructions"))?;
            Ok((Some(Content::text(text)), Slot::Text(value.range())))
        }
    }
}

type Input<'a> = (Vec<Message<'a>>, Vec<Slot>, Slot);

/// The input may be absent: a stored reply or a stored prompt can be all there is.
fn input<'a>(root: &Object<'a>) -> Result<Input<'a>, Malformed> {
    let Some(value) = root.get("input") else {
        return Ok((Vec::new(), Vec::new(), Slot::Absent));
    };
    if value.is_string() {
        let text = value.string().map_err(|error| error.within("input"))?;
        let slot = Slot::Text(value.range());
        return Ok((
            vec![Message::text(Role::User, text)],
            vec![slot.clone()],
            slot,
        ));
    }
    if value.is_null() {
        return Err(Malformed::here(Reason::Null).within("input"));
    }
    let elements = value.elements().map_err(|error| error.within("input"))?;
    let (messages, contents) = reading::each("input", &elements, item)?;
    let slot = Slot::List(List::of_array(value, &elements));
    Ok((messages, contents, slot))
}

fn item<'a>(object: &Object<'a>) -> Result<(Message<'a>, Slot), Malformed> {
    let kind = object.text("type").unwrap_or(Cow::Borrowed("message"));
    if kind == "message" {
        let role = reading::role(object)?;
        let (content, slot) = reading::content(object, "content", false, part)?;
        return Ok((Message { role, content }, slot));
    }
    let id = object.text("call_id");
    let (role, part) = match &*kind {
        "function_call" | "custom_tool_call" => {
            let arguments = object.text("arguments").or_else(|| object.text("input"));
            (Role::Assistant, call(id, object.text("name"), arguments))
        }
        "reasoning" => (Role::Assistant, reasoning(object)),
        kind if kind.ends_with("_output") => {
            let said = object.get("output").and_then(reading::said);
            (Role::Tool, result(id, None, said))
        }
        kind if kind.ends_with("_call") => (Role::Assistant, Part::of(PartKind::Opaque)),
        _ => (Role::Other, Part::of(PartKind::Opaque)),
    };
    let content = Content {
        shape: Shape::Absent,
        parts: vec![part],
    };
    Ok((Message { role, content }, Slot::Absent))
}

fn reasoning<'a>(object: &Object<'a>) -> Part<'a> {
    Part {
        text: object.get("summary").and_then(reading::said),
        ..Part::of(PartKind::Reasoning)
    }
}

fn part<'a>(object: &Object<'a>, kind: &str) -> Part<'a> {
    if let (true, Some(text)) = (kind == "refusal", object.text("refusal")) {
        return Part::text(text);
    }
    Part::of(match kind {
        "input_text" | "output_text" | "text" => PartKind::Text,
        "input_image" => PartKind::Image,
        "input_audio" => PartKind::Audio,
        "input_file" => PartKind::Document,
        _ => PartKind::Opaque,
    })
}
