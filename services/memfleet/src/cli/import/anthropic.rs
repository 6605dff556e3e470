//! Messages as Anthropic's endpoint takes and gives them: content blocks, the instructions beside the list, tool results
//! inside user messages (they become turns of the tool).

use std::collections::HashMap;

use memfleet_domain::Timestamp;
use memfleet_domain::turn::{Media, Role};
use serde_json::Value;

use super::envelopes::Envelope;
use super::messages::{Message, id_of, time_of, tool_call};
use crate::said::media;

/// Kinds of content block that only this format has.
const OWN_BLOCKS: [&str; 6] = [
    "tool_use",
    "tool_result",
    "image",
    "document",
    "thinking",
    "redacted_thinking",
];

/// Whether the list can only be in this format.
pub fn is_certain(envelope: &Envelope) -> bool {
    let blocks = envelope
        .messages
        .iter()
        .filter_map(|message| message.get("content")?.as_array())
        .flatten();
    let own = |block: &Value| {
        block
            .get("type")
            .and_then(Value::as_str)
            .is_some_and(|kind| OWN_BLOCKS.contains(&kind))
    };
    envelope.system.is_some() || blocks.into_iter().any(own)
}

/// The messages of a list, the instructions first.
pub fn messages(envelope: &Envelope) -> Result<Vec<Message>, String> {
    let mut found = Vec::new();
    if let Some(system) = &envelope.system {
        let (text, media) = words(system).map_err(|problem| format!("system: {problem}"))?;
        found.push(Message {
            role: Role::System,
            speaker: "system".to_owned(),
            text,
            media,
            id: None,
            time: None,
        });
    }
    let mut tools = HashMap::new();
    for (index, message) in envelope.messages.iter().enumerate() {
        found.extend(
            read(message, &mut tools).map_err(|problem| format!("messages[{index}].{problem}"))?,
        );
    }
    Ok(found)
}

fn read<'a>(
    message: &'a Value,
    tools: &mut HashMap<&'a str, &'a str>,
) -> Result<Vec<Message>, String> {
    let name = message
        .get("role")
        .and_then(Value::as_str)
        .unwrap_or("nothing");
    let role = match name {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        _ => return Err(format!("role: `{name}` is neither `user` nor `assistant`")),
    };
    let content = message.get("content").unwrap_or(&Value::Null);
    let time = time_of(message)?;
    let mut found = Vec::new();
    for block in content.as_array().into_iter().flatten() {
        let text = |key: &str| block.get(key).and_then(Value::as_str);
        match (text("type"), text("id"), text("name")) {
            (Some("tool_use"), Some(id), Some(tool)) => {
                tools.insert(id, tool);
            }
            (Some("tool_result"), ..) => found.push(tool_result(block, tools, time)?),
            _ => {}
        }
    }
    let (text, media) = words(content).map_err(|problem| format!("content: {problem}"))?;
    found.push(Message {
        role,
        speaker: name.to_owned(),
        text,
        media,
        id: id_of(message),
        time,
    });
    Ok(found)
}

/// What a tool gave back, said by the tool that was called.
fn tool_result(
    block: &Value,
    tools: &HashMap<&str, &str>,
    time: Option<Timestamp>,
) -> Result<Message, String> {
    let called = block.get("tool_use_id").and_then(Value::as_str);
    let tool = called.and_then(|id| tools.get(id).copied());
    let (text, media) = words(block.get("content").unwrap_or(&Value::Null))?;
    Ok(Message {
        role: Role::Tool,
        speaker: tool.unwrap_or("tool").to_owned(),
        text,
        media,
        id: None,
        time,
    })
}

/// Words and media of a content. Thoughts are not part of the conversation, and tool results are turns of their own.
fn words(content: &Value) -> Result<(String, Vec<Media>), String> {
    let blocks = match content {
        Value::Null => return Ok((String::new(), vec![])),
        Value::String(text) => return Ok((text.clone(), vec![])),
        Value::Array(blocks) => blocks,
        _ => return Err("is neither a text nor a list of content blocks".to_owned()),
    };
    let texts = blocks.iter().filter_map(block_text).collect::<Vec<_>>();
    Ok((
        texts.join("\n"),
        blocks.iter().filter_map(attachment).collect(),
    ))
}

fn block_text(block: &Value) -> Option<String> {
    let text = |key: &str| block.get(key).and_then(Value::as_str);
    match text("type")? {
        "text" => text("text").map(str::to_owned),
        "tool_use" => Some(tool_call(
            text("name")?,
            &block.get("input").unwrap_or(&Value::Null).to_string(),
        )),
        _ => None,
    }
}

fn attachment(block: &Value) -> Option<Media> {
    let text = |path: &str| block.pointer(path).and_then(Value::as_str);
    let caption = match text("/type")? {
        "image" => "an image",
        "document" => text("/title").unwrap_or("a document"),
        _ => return None,
    };
    let mime_type = text("/source/media_type").unwrap_or("");
    match text("/source/type")? {
        "base64" => Some(media(
            &format!("data:{mime_type};base64,{}", text("/source/data")?),
            mime_type,
            caption,
        )),
        "url" => Some(media(text("/source/url")?, mime_type, caption)),
        "file" => Some(media(text("/source/file_id")?, mime_type, caption)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn envelope(system: Option<Value>, messages: &[Value]) -> Envelope {
        Envelope {
            name: None,
            system,
            messages: messages.to_vec(),
        }
    }

    #[test]
    fn instructions_come_first_and_thoughts_stay_out() {
        let list = envelope(
            Some(json!([{"type": "text", "text": "be kind"}])),
            &[json!({"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm"},
                {"type": "text", "text": "hello"},
            ]})],
        );
        let read = messages(&list).unwrap();
        assert_eq!(
            (read[0].role, read[0].text.as_str()),
            (Role::System, "be kind")
        );
        assert_eq!(
            (read[1].role, read[1].text.as_str()),
            (Role::Assistant, "hello")
        );
        assert!(is_certain(&list));
    }

    #[test]
    fn tool_results_are_turns_of_the_tool_before_the_words_of_the_user() {
        let read = messages(&envelope(
            None,
            &[
                json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Graz"}}]}),
                json!({"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "snow"}]},
                    {"type": "text", "text": "thanks"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
                ]}),
            ],
        ))
        .unwrap();
        let seen = read
            .iter()
            .map(|one| (one.role, one.speaker.as_str(), one.text.as_str()))
            .collect::<Vec<_>>();
        assert_eq!(
            seen,
            [
                (
                    Role::Assistant,
                    "assistant",
                    "[calls weather({\"city\":\"Graz\"})]"
                ),
                (Role::Tool, "weather", "snow"),
                (Role::User, "user", "thanks"),
            ]
        );
        assert_eq!(read[2].media[0].mime_type, "image/png");
    }

    #[test]
    fn plain_texts_are_no_proof_of_this_format() {
        assert!(!is_certain(&envelope(
            None,
            &[json!({"role": "user", "content": "hi"})]
        )));
    }

    #[test]
    fn an_error_names_the_message_and_the_field() {
        let error =
            messages(&envelope(None, &[json!({"role": "tool", "content": "x"})])).unwrap_err();
        assert_eq!(
            error,
            "messages[0].role: `tool` is neither `user` nor `assistant`"
        );
    }
}
