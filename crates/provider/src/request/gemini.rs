//! Gemini `generateContent`. Names may be in camel case or in snake case, and a list of one may be
//! its element alone, as in all JSON of protocol buffers.

use super::reading::{self, call, result};
use crate::conversation::{
    Content, Conversation, Hints, Message, Part, PartKind, Role, Tool, ToolChoice,
};
use crate::json::{Node, Object};
use crate::layout::{Choice, Layout, List, Site, Slot, Tools};
use crate::malformed::{Malformed, Reason};
use std::borrow::Cow;

pub(super) fn read<'a>(root: &Object<'a>) -> Result<(Conversation<'a>, Layout), Malformed> {
    let array = root.required("contents")?;
    let elements = array
        .one_or_more()
        .map_err(|error| error.within("contents"))?;
    let (messages, contents) = reading::each("contents", &elements, message)?;
    let (system, system_slot) = system(root)?;
    let (tools, tool_layout) = tools(root)?;
    let (tool_choice, choice) = tool_choice(root)?;
    let settings = named(root, "generationConfig", "generation_config")?
        .filter(|settings| settings.is_object())
        .map(Node::object)
        .transpose()
        .map_err(|error| error.within("generationConfig"))?;
    let number = |camel: &str, snake: &str| {
        let settings = settings.as_ref()?;
        settings
            .get(camel)
            .or_else(|| settings.get(snake))?
            .unsigned()
    };
    let conversation = Conversation {
        model: root.text("model"),
        system,
        system_field: true,
        messages,
        tools,
        tool_choice,
        candidates: number("candidateCount", "candidate_count").unwrap_or(0),
        max_output_tokens: number("maxOutputTokens", "max_output_tokens"),
        hints: Hints {
            session: reading::session_in_metadata(root),
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

/// A member under either of its names. Both at once are refused: which of them counts would be a guess.
fn named<'a>(object: &Object<'a>, camel: &str, snake: &str) -> Result<Option<Node<'a>>, Malformed> {
    match (object.get(camel), object.get(snake)) {
        (Some(_), Some(_)) => Err(Malformed::here(Reason::DuplicateKey(snake.to_owned()))),
        (first, second) => Ok(first.or(second)),
    }
}

fn system<'a>(root: &Object<'a>) -> Result<(Option<Content<'a>>, Slot), Malformed> {
    match named(root, "systemInstruction", "system_instruction")? {
        None => Ok((None, Slot::Absent)),
        Some(value) if value.is_null() => Ok((None, Slot::Null(value.range()))),
        Some(value) => {
            let read = value.object().and_then(|object| content(&object));
            let (content, slot) = read.map_err(|error| error.within("systemInstruction"))?;
            Ok((Some(content), slot))
        }
    }
}

fn content<'a>(object: &Object<'a>) -> Result<(Content<'a>, Slot), Malformed> {
    let array = object.required("parts")?;
    let elements = array.one_or_more();
    elements
        .and_then(|elements| reading::parts(array, &elements, part))
        .map_err(|error| error.within("parts"))
}

fn message<'a>(object: &Object<'a>) -> Result<(Message<'a>, Slot), Malformed> {
    let role = match object.present("role") {
        None => Role::User,
        Some(_) => reading::role(object)?,
    };
    let (content, slot) = content(object)?;
    Ok((Message { role, content }, slot))
}

fn part<'a>(object: &Object<'a>, _kind: &str) -> Part<'a> {
    let either = |camel: &str, snake: &str| {
        let value = object.get(camel).or_else(|| object.get(snake))?;
        value.object().ok()
    };
    if object.get("thought").is_some_and(Node::is_true) {
        return Part {
            text: object.text("text"),
            ..Part::of(PartKind::Reasoning)
        };
    }
    if object.get("text").is_some() {
        return Part::of(PartKind::Text);
    }
    if let Some(function) = either("functionCall", "function_call") {
        let arguments = function.get("args").map(|args| Cow::Borrowed(args.raw()));
        return call(function.text("id"), function.text("name"), arguments);
    }
    if let Some(function) = either("functionResponse", "function_response") {
        let said = function.get("response").and_then(reading::said);
        return result(function.text("id"), function.text("name"), said);
    }
    let media = either("inlineData", "inline_data").or_else(|| either("fileData", "file_data"));
    Part::of(media.map_or(PartKind::Opaque, |media| media_kind(&media)))
}

fn media_kind(media: &Object<'_>) -> PartKind {
    let kind = media.text("mimeType").or_else(|| media.text("mime_type"));
    match kind.as_deref().and_then(|kind| kind.split('/').next()) {
        Some("image" | "video") => PartKind::Image,
        Some("audio") => PartKind::Audio,
        _ => PartKind::Document,
    }
}

fn tools<'a>(root: &Object<'a>) -> Result<(Vec<Tool<'a>>, Tools), Malformed> {
    let (slot, entries) =
        Slot::list(root.get("tools"), Node::one_or_more).map_err(|error| error.within("tools"))?;
    let mut tools = Vec::new();
    let mut layout = Tools {
        slot,
        member: root.members.iter().position(|m| m.name == "tools"),
        ..Tools::default()
    };
    for (index, entry) in entries.iter().enumerate() {
        entry
            .object()
            .and_then(|entry| declarations(&entry, index, &mut tools, &mut layout))
            .map_err(|error| error.at(index).within("tools"))?;
    }
    Ok((tools, layout))
}

/// An entry declares functions, or is a tool that the provider runs.
fn declarations<'a>(
    entry: &Object<'a>,
    entry_index: usize,
    tools: &mut Vec<Tool<'a>>,
    layout: &mut Tools,
) -> Result<(), Malformed> {
    let Some(array) = named(entry, "functionDeclarations", "function_declarations")? else {
        if let Some(member) = entry.members.first() {
            tools.push(Tool {
                name: member.name.clone(),
                definition: Cow::Borrowed(member.value.raw()),
            });
            layout.sites.push(Site {
                name: member.name.clone().into_owned(),
                declarations: None,
                index: entry_index,
            });
        }
        return Ok(());
    };
    let elements = array
        .one_or_more()
        .map_err(|error| error.within("functionDeclarations"))?;
    for (index, element) in elements.iter().enumerate() {
        let function = element
            .object()
            .map_err(|error| error.at(index).within("functionDeclarations"))?;
        let name = function.text("name").unwrap_or_default();
        layout.sites.push(Site {
            name: name.clone().into_owned(),
            declarations: Some(layout.declarations.len()),
            index,
        });
        tools.push(Tool {
            name,
            definition: Cow::Borrowed(element.raw()),
        });
    }
    let list = List::of_array(array, &elements);
    layout.declarations.push((entry_index, list));
    Ok(())
}

fn tool_choice(root: &Object<'_>) -> Result<(ToolChoice, Choice), Malformed> {
    let Some(settings) = named(root, "toolConfig", "tool_config")?.filter(|v| !v.is_null()) else {
        return Ok((ToolChoice::Auto, Choice::Absent));
    };
    let place = |error: Malformed| error.within("toolConfig");
    let settings = settings.object().map_err(place)?;
    let calling = named(
        &settings,
        "functionCallingConfig",
        "function_calling_config",
    );
    let Some(calling) = calling.map_err(place)? else {
        return Ok((ToolChoice::Auto, Choice::Inside(List::of_object(&settings))));
    };
    let choice = calling.object().map_or(ToolChoice::Auto, |object| {
        let only = named(&object, "allowedFunctionNames", "allowed_function_names");
        match object.text("mode").as_deref() {
            Some("NONE") => ToolChoice::None,
            _ if only.is_ok_and(|only| only.is_some_and(Node::is_array)) => ToolChoice::Forced,
            Some("ANY") => ToolChoice::Required,
            _ => ToolChoice::Auto,
        }
    });
    Ok((choice, Choice::Value(calling.range())))
}
