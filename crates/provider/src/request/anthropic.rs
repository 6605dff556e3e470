//! Anthropic messages. Results of tools come in messages of the user, and parts may carry cache markers.

use super::reading::{self, call, result};
use crate::conversation::{Content, Conversation, Hints, Message, Part, PartKind, ToolChoice};
use crate::json::{Node, Object};
use crate::layout::{Choice, Layout, List, Slot};
use crate::malformed::Malformed;
use std::borrow::Cow;

pub(super) fn read<'a>(root: &Object<'a>) -> Result<(Conversation<'a>, Layout), Malformed> {
    let array = root.required("messages")?;
    let elements = array.elements().map_err(|error| error.within("messages"))?;
    let (messages, contents) = reading::each("messages", &elements, message)?;
    let (system, system_slot) = system(root)?;
    let (tools, tool_layout) = reading::tools(root, |tool| tool.text("name"))?;
    let (tool_choice, choice) = tool_choice(root)?;
    let conversation = Conversation {
        model: root.text("model"),
        system,
        system_field: true,
        messages,
        tools,
        tool_choice,
        streams: root.get("stream").is_some_and(Node::is_true),
        max_output_tokens: root.get("max_tokens").and_then(Node::unsigned),
        hints: Hints {
            session: reading::session_in_metadata(root).or_else(|| session_of_user(root)),
            previous_reply: None,
        },
        ..Conversation::default()
    };
    let layout = Layout {
        root: List::of_object(root),
        system: system_slot,
        messages: Slot::List(List::of_array(array, &elements)),
        contents,
        tools: tool_layout,
        choice,
    };
    Ok((conversation, layout))
}

/// Some clients put the session behind the account in `metadata.user_id`: `user_…_account_…_session_<id>`.
fn session_of_user<'a>(root: &Object<'a>) -> Option<Cow<'a, str>> {
    let user = root.child("metadata").ok()??.text("user_id")?;
    let (_, id) = user.rsplit_once("_session_")?;
    (!id.is_empty()).then(|| Cow::Owned(id.to_owned()))
}

fn system<'a>(root: &Object<'a>) -> Result<(Option<Content<'a>>, Slot), Malformed> {
    match root.get("system") {
        None => Ok((None, Slot::Absent)),
        Some(value) if value.is_null() => Ok((None, Slot::Null(value.range()))),
        Some(value) => {
            let (content, slot) =
                reading::content_of(value, part).map_err(|error| error.within("system"))?;
            Ok((Some(content), slot))
        }
    }
}

fn tool_choice(root: &Object<'_>) -> Result<(ToolChoice, Choice), Malformed> {
    let Some(value) = root.get("tool_choice") else {
        return Ok((ToolChoice::Auto, Choice::Absent));
    };
    let kind = root
        .child("tool_choice")?
        .and_then(|object| object.text("type"));
    let choice = match kind.as_deref() {
        Some("none") => ToolChoice::None,
        Some("any") => ToolChoice::Required,
        Some("tool") => ToolChoice::Forced,
        _ => ToolChoice::Auto,
    };
    Ok((choice, Choice::Value(value.range())))
}

fn message<'a>(object: &Object<'a>) -> Result<(Message<'a>, Slot), Malformed> {
    let role = reading::role(object)?;
    let (content, slot) = reading::content(object, "content", false, part)?;
    Ok((Message { role, content }, slot))
}

fn part<'a>(object: &Object<'a>, kind: &str) -> Part<'a> {
    match kind {
        "text" => Part::of(PartKind::Text),
        "image" => Part::of(PartKind::Image),
        "document" | "search_result" | "container_upload" => Part::of(PartKind::Document),
        "thinking" | "redacted_thinking" => Part {
            text: object.text("thinking"),
            ..Part::of(PartKind::Reasoning)
        },
        kind if kind.ends_with("tool_use") => {
            let arguments = object.get("input").map(|input| Cow::Borrowed(input.raw()));
            call(object.text("id"), object.text("name"), arguments)
        }
        kind if kind.ends_with("tool_result") => {
            let said = object.get("content").and_then(reading::said);
            result(object.text("tool_use_id"), None, said)
        }
        _ => Part::of(PartKind::Opaque),
    }
}
