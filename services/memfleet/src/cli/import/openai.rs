//! Messages as OpenAI-compatible endpoints take and give them.

use std::collections::HashMap;

use memfleet_domain::turn::{Media, Role};
use serde_json::Value;

use super::envelopes::Envelope;
use super::messages::{Message, id_of, time_of, tool_call};
use crate::said::media;

/// The messages of a list.
pub fn messages(envelope: &Envelope) -> Result<Vec<Message>, String> {
    let mut tools = HashMap::new();
    let messages = envelope.messages.iter().enumerate();
    messages
        .map(|(index, message)| {
            read(message, &mut tools).map_err(|problem| format!("messages[{index}].{problem}"))
        })
        .collect()
}

fn read<'a>(message: &'a Value, tools: &mut HashMap<&'a str, &'a str>) -> Result<Message, String> {
    let text = |key: &str| message.get(key).and_then(Value::as_str);
    let role = role(text("role"))?;
    let (mut parts, media) = content(message.get("content").unwrap_or(&Value::Null))?;
    let calls = message.get("tool_calls").and_then(Value::as_array);
    for call in calls.into_iter().flatten() {
        let function = |key: &str| {
            let value = call.pointer(&format!("/function/{key}"));
            value.and_then(Value::as_str).unwrap_or("")
        };
        if let (Some(id), Some(name)) = (call.get("id"), call.pointer("/function/name")) {
            tools.extend(id.as_str().zip(name.as_str()));
        }
        parts.push(tool_call(function("name"), function("arguments")));
    }
    let called = text("tool_call_id").and_then(|id| tools.get(id).copied());
    let speaker = text("name")
        .or(called)
        .or(text("role"))
        .unwrap_or_default()
        .to_owned();
    Ok(Message {
        role,
        speaker,
        text: parts.join("\n"),
        media,
        id: id_of(message),
        time: time_of(message)?,
    })
}

fn role(name: Option<&str>) -> Result<Role, String> {
    match name {
        Some("user") => Ok(Role::User),
        Some("assistant") => Ok(Role::Assistant),
        Some("system" | "developer") => Ok(Role::System),
        Some("tool" | "function") => Ok(Role::Tool),
        other => Err(format!(
            "role: `{}` is not a role of a chat message",
            other.unwrap_or("nothing")
        )),
    }
}

/// Texts and media of a content: a text, nothing, or a list of parts. Parts that hold neither are left out.
fn content(content: &Value) -> Result<(Vec<String>, Vec<Media>), String> {
    let parts = match content {
        Value::Null => return Ok((vec![], vec![])),
        Value::String(text) => return Ok((vec![text.clone()], vec![])),
        Value::Array(parts) => parts,
        _ => return Err("content: is neither a text nor a list of parts".to_owned()),
    };
    let text = |part: &Value| {
        ["text", "refusal"]
            .iter()
            .find_map(|key| part.get(*key)?.as_str().map(str::to_owned))
    };
    Ok((
        parts.iter().filter_map(text).collect(),
        parts.iter().filter_map(attachment).collect(),
    ))
}

fn attachment(part: &Value) -> Option<Media> {
    let text = |path: &str| part.pointer(path).and_then(Value::as_str);
    match text("/type")? {
        "image_url" | "input_image" => text("/image_url/url")
            .or(text("/image_url"))
            .map(|uri| media(uri, "", "an image")),
        "input_audio" => text("/input_audio/data").map(|data| {
            let format = text("/input_audio/format").unwrap_or("wav");
            media(
                &format!("data:audio/{format};base64,{data}"),
                "",
                "an audio clip",
            )
        }),
        "file" => {
            let caption = text("/file/filename").unwrap_or("a file");
            text("/file/file_data")
                .or(text("/file/file_id"))
                .map(|uri| media(uri, "", caption))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_all(messages_json: Value) -> Result<Vec<Message>, String> {
        let Value::Array(list) = messages_json else {
            panic!("a list")
        };
        messages(&Envelope {
            name: None,
            system: None,
            messages: list,
        })
    }

    #[test]
    fn texts_parts_and_images_are_read() {
        let read = read_all(json!([
            {"role": "developer", "content": "be brief"},
            {"role": "user", "name": "Noor", "content": [
                {"type": "text", "text": "what is this?"},
                {"type": "image_url", "image_url": {"url": "https://a.example/cat.jpg"}},
            ]},
        ]))
        .unwrap();
        assert_eq!(
            (read[0].role, read[0].text.as_str()),
            (Role::System, "be brief")
        );
        assert_eq!(
            (read[1].speaker.as_str(), read[1].text.as_str()),
            ("Noor", "what is this?")
        );
        assert_eq!(read[1].media[0].uri, "https://a.example/cat.jpg");
    }

    #[test]
    fn tool_calls_become_words_and_their_results_name_the_tool() {
        let read = read_all(json!([
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Porto\"}"}},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "rain"},
        ]))
        .unwrap();
        assert_eq!(read[0].text, "[calls weather({\"city\":\"Porto\"})]");
        assert_eq!(
            (read[1].role, read[1].speaker.as_str()),
            (Role::Tool, "weather")
        );
    }

    #[test]
    fn an_error_names_the_message_and_the_field() {
        let error =
            read_all(json!([{"role": "user", "content": "a"}, {"role": "bot", "content": "b"}]))
                .unwrap_err();
        assert_eq!(
            error,
            "messages[1].role: `bot` is not a role of a chat message"
        );
        assert!(
            read_all(json!([{"role": "user", "content": 7}]))
                .unwrap_err()
                .starts_with("messages[0].content")
        );
    }
}
