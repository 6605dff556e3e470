//! Messages as Anthropic's endpoint takes and gives them: content blocks, the instructions beside the list, tool results
//! inside user messages (they become turns of the tool).

use memfleet_domain::Timestamp;
use memfleet_domain::turn::{Media, Role};
use serde_json::Value;

use super::envelopes::{Envelope, Tools};
use super::messages::{Message, id_of, parts, role_of, time_of, tool_call};
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
        .filter_map(|message| message.value.get("content")?.as_array())
        .flatten();
    let own = |block: &Value| {
        block
            .get("type")
            .and_then(Value::as_str)
            .is_some_and(|kind| OWN_BLOCKS.contains(&kind))
    };
    envelope.instructed || blocks.into_iter().any(own)
}

/// Reads a message: the results of tools first, then its own words. `tools` names the tool of
/// each call so far.
pub fn read<'a>(message: &'a Value, tools: &mut Tools<'a>) -> Result<Vec<Message>, String> {
    let role = role_of(message)?;
    let blocks = parts(message.get("content").unwrap_or(&Value::Null))?;
    let time = time_of(message)?;
    let mut found = Vec::new();
    for block in blocks {
        let text = |key: &str| block.get(key).and_then(Value::as_str);
        match (text("type"), text("id"), text("name")) {
            (Some("tool_use"), Some(id), Some(tool)) => {
                tools.insert(id, tool);
            }
            (Some("tool_result"), ..) => found.push(tool_result(block, tools, time)?),
            _ => {}
        }
    }
    let name = message.get("role").and_then(Value::as_str);
    let (text, media) = words(blocks);
    found.push(Message {
        role,
        speaker: name.unwrap_or_default().to_owned(),
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
    tools: &Tools<'_>,
    time: Option<Timestamp>,
) -> Result<Message, String> {
    let called = block.get("tool_use_id").and_then(Value::as_str);
    let tool = called.and_then(|id| tools.get(id).copied());
    let (text, media) = words(parts(block.get("content").unwrap_or(&Value::Null))?);
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
fn words(blocks: &[Value]) -> (String, Vec<Media>) {
    let texts = blocks.iter().filter_map(block_text).collect::<Vec<_>>();
    let media = blocks.iter().filter_map(attachment).collect();
    (texts.join("\n"), media)
}

fn block_text(block: &Value) -> Option<String> {
    if let Some(text) = block.as_str() {
        return Some(text.to_owned());
    }
    let text = |key: &str| block.get(key).and_then(Value::as_str);
    match text("type").unwrap_or("text") {
        "text" => text("text").map(str::to_owned),
        "tool_use" => Some(tool_call(text("name")?, block.get("input"))),
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

    fn read_all(messages: &Value) -> Vec<Message> {
        let mut tools = Tools::new();
        let messages = messages.as_array().unwrap().iter();
        messages
            .flat_map(|message| read(message, &mut tools).unwrap())
            .collect()
    }

    #[test]
    fn thoughts_stay_out() {
        let read = read_all(&json!([
            {"role": "system", "content": [{"type": "text", "text": "be kind"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm"},
                {"type": "text", "text": "hello"},
            ]},
        ]));
        assert_eq!(
            (read[0].role, read[0].text.as_str()),
            (Role::System, "be kind")
        );
        assert_eq!(
            (read[1].role, read[1].text.as_str()),
            (Role::Assistant, "hello")
        );
    }

    #[test]
    fn tool_results_are_turns_of_the_tool_before_the_words_of_the_user() {
        let read = read_all(&json!([
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Graz"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "snow"}]},
                {"type": "text", "text": "thanks"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
            ]},
        ]));
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
    fn an_error_names_the_field() {
        let problem = read(&json!({"role": "bot", "content": "x"}), &mut Tools::new());
        assert_eq!(
            problem.unwrap_err(),
            "role: \"bot\" is not a role of a chat message"
        );
    }
}
