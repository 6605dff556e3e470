//! What the readers of all formats share.

use crate::conversation::{
    CallId, Content, Message, Part, PartKind, Role, Shape, Tool, ToolChoice,
};
use crate::json::{Node, Object};
use crate::layout::{Choice, List, Site, Slot, Tools};
use crate::malformed::{Malformed, Reason};
use std::borrow::Cow;

/// Reads one element of a list of parts.
pub(super) type PartReader = for<'a> fn(&Object<'a>, &str) -> Part<'a>;

/// Content that is a string or a list of parts, and where it stands. `null` and absent are refused unless it is `optional`.
pub(super) fn content<'a>(
    object: &Object<'a>,
    name: &str,
    optional: bool,
    part: PartReader,
) -> Result<(Content<'a>, Slot), Malformed> {
    if optional && object.present(name).is_none() {
        let empty = Content {
            shape: Shape::Absent,
            parts: Vec::new(),
        };
        return Ok((empty, Slot::Absent));
    }
    let value = object.required(name)?;
    content_of(value, part).map_err(|error| error.within(name))
}

pub(super) fn content_of(
    value: Node<'_>,
    part: PartReader,
) -> Result<(Content<'_>, Slot), Malformed> {
    if value.is_string() {
        return Ok((Content::text(value.string()?), Slot::Text(value.range())));
    }
    if !value.is_array() {
        return Err(Malformed::here(Reason::NotA("a string or an array")));
    }
    parts(value, &value.elements()?, part)
}

/// A list of parts, and the elements that it has.
pub(super) fn parts<'a>(
    value: Node<'a>,
    elements: &[Node<'a>],
    part: PartReader,
) -> Result<(Content<'a>, Slot), Malformed> {
    let mut list = Vec::with_capacity(elements.len());
    for (index, element) in elements.iter().enumerate() {
        list.push(typed_part(*element, part).map_err(|error| error.at(index))?);
    }
    Ok((
        Content::list(list),
        Slot::List(List::of_array(value, elements)),
    ))
}

fn typed_part(element: Node<'_>, part: PartReader) -> Result<Part<'_>, Malformed> {
    if !element.is_object() {
        return Ok(Part::of(PartKind::Opaque));
    }
    let object = element.object()?;
    let kind = object.text("type").unwrap_or_default();
    let mut part = part(&object, &kind);
    if part.kind == PartKind::Text && part.text.is_none() {
        let text = object.required("text")?.string();
        part.text = Some(text.map_err(|error| error.within("text"))?);
    }
    part.cached = object.present("cache_control").is_some();
    Ok(part)
}

/// The name of whoever speaks.
pub(super) fn role(object: &Object<'_>) -> Result<Role, Malformed> {
    let value = object.required("role")?;
    let name = value.string().map_err(|error| error.within("role"))?;
    Ok(Role::named(&name))
}

/// A part that is a tool call.
pub(super) fn call<'a>(
    id: Option<Cow<'a, str>>,
    name: Option<Cow<'a, str>>,
    arguments: Option<Cow<'a, str>>,
) -> Part<'a> {
    Part {
        call: Some(CallId { id, name }),
        text: arguments,
        ..Part::of(PartKind::ToolCall)
    }
}

/// A part that is a tool's result.
pub(super) fn result<'a>(
    id: Option<Cow<'a, str>>,
    name: Option<Cow<'a, str>>,
    text: Option<Cow<'a, str>>,
) -> Part<'a> {
    Part {
        kind: PartKind::ToolResult,
        ..call(id, name, text)
    }
}

/// What a value says to a model: a string's text, the texts of a list of parts, else its JSON.
pub(super) fn said(value: Node<'_>) -> Option<Cow<'_, str>> {
    if value.is_null() {
        return None;
    }
    if value.is_string() {
        return value.string().ok();
    }
    let Ok(elements) = value.elements() else {
        return Some(Cow::Borrowed(value.raw()));
    };
    let texts = elements
        .iter()
        .filter_map(|element| element.object().ok()?.text("text"));
    Some(Cow::Owned(texts.collect::<Vec<_>>().join("\n")))
}

/// The tools of formats that have them in an array, each named by `name`.
pub(super) fn tools<'a>(
    root: &Object<'a>,
    name: fn(&Object<'a>) -> Option<Cow<'a, str>>,
) -> Result<(Vec<Tool<'a>>, Tools), Malformed> {
    let (slot, elements) =
        Slot::list(root.get("tools"), Node::elements).map_err(|error| error.within("tools"))?;
    let mut tools = Vec::with_capacity(elements.len());
    let mut sites = Vec::with_capacity(elements.len());
    for (index, element) in elements.iter().enumerate() {
        let object = element
            .object()
            .map_err(|error| error.at(index).within("tools"))?;
        let name = name(&object)
            .or_else(|| object.text("type"))
            .unwrap_or_default();
        sites.push(Site {
            name: name.clone().into_owned(),
            declarations: None,
            index,
        });
        tools.push(Tool {
            name,
            definition: Cow::Borrowed(element.raw()),
        });
    }
    let layout = Tools {
        slot,
        member: root.members.iter().position(|m| m.name == "tools"),
        declarations: Vec::new(),
        sites,
    };
    Ok((tools, layout))
}

/// What a choice says that is a word, or an object for a certain tool (`OpenAI`).
pub(super) fn worded_choice(root: &Object<'_>) -> (ToolChoice, Choice) {
    let Some(value) = root.get("tool_choice") else {
        return (ToolChoice::Auto, Choice::Absent);
    };
    let choice = match value.string().as_deref() {
        Ok("none") => ToolChoice::None,
        Ok("required" | "any") => ToolChoice::Required,
        Err(_) if value.is_object() => ToolChoice::Forced,
        _ => ToolChoice::Auto,
    };
    (choice, Choice::Value(value.range()))
}

/// Reads each message of an array.
pub(super) fn each<'a>(
    name: &str,
    elements: &[Node<'a>],
    read: fn(&Object<'a>) -> Result<(Message<'a>, Slot), Malformed>,
) -> Result<(Vec<Message<'a>>, Vec<Slot>), Malformed> {
    let mut messages = Vec::with_capacity(elements.len());
    let mut contents = Vec::with_capacity(elements.len());
    for (index, element) in elements.iter().enumerate() {
        let (message, slot) = element
            .object()
            .and_then(|object| read(&object))
            .map_err(|error| error.at(index).within(name))?;
        messages.push(message);
        contents.push(slot);
    }
    Ok((messages, contents))
}

/// The id of a session in a body's `metadata`.
pub(super) fn session_in_metadata<'a>(root: &Object<'a>) -> Option<Cow<'a, str>> {
    let metadata = root.child("metadata").ok()??;
    ["session_id", "conversation_id", "thread_id"]
        .into_iter()
        .find_map(|name| metadata.text(name))
        .filter(|id| !id.trim().is_empty())
}
