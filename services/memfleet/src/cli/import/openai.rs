//! Messages as OpenAI-compatible endpoints take and give them.

use memfleet_domain::turn::Media;
use serde_json::Value;

use super::envelopes::Tools;
use super::messages::{Message, id_of, parts, role_of, time_of, tool_call};
use crate::said::media;

/// Reads a message. `tools` names the tool of each call so far.
pub fn read<'a>(message: &'a Value, tools: &mut Tools<'a>) -> Result<Vec<Message>, String> {
    let text = |path: &str| message.pointer(path).and_then(Value::as_str);
    let role = role_of(message)?;
    let content = parts(message.get("content").unwrap_or(&Value::Null))?;
    let mut words = content.iter().filter_map(words).collect::<Vec<_>>();
    words.extend(text("/refusal").map(str::to_owned));
    words.extend(text("/audio/transcript").map(str::to_owned));
    let calls = message.get("tool_calls").and_then(Value::as_array);
    for call in calls.into_iter().flatten() {
        if let (Some(id), Some(name)) = (call.get("id"), call.pointer("/function/name")) {
            tools.extend(id.as_str().zip(name.as_str()));
        }
        words.extend(call.get("function").map(called));
    }
    words.extend(
        message
            .get("function_call")
            .filter(|call| call.is_object())
            .map(called),
    );
    let tool = text("/tool_call_id").and_then(|id| tools.get(id).copied());
    let speaker = text("/name")
        .filter(|name| !name.trim().is_empty())
        .or(tool)
        .or(text("/role"))
        .unwrap_or_default()
        .to_owned();
    Ok(vec![Message {
        role,
        speaker,
        text: words.join("\n"),
        media: content.iter().filter_map(attachment).collect(),
        id: id_of(message),
        time: time_of(message)?,
    }])
}

/// A call of a function as words.
fn called(function: &Value) -> String {
    let name = function.get("name").and_then(Value::as_str);
    tool_call(name.unwrap_or(""), function.get("arguments"))
}

/// The words of a part, which may be a text alone.
fn words(part: &Value) -> Option<String> {
    let member = |key| part.get(key)?.as_str();
    let words = part
        .as_str()
        .or_else(|| ["text", "refusal"].into_iter().find_map(member));
    words.map(str::to_owned)
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
    use memfleet_domain::turn::Role;
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
    fn texts_parts_and_images_are_read() {
        let read = read_all(&json!([
            {"role": "developer", "content": "be brief"},
            {"role": "user", "name": "Noor", "content": [
                {"type": "text", "text": "what is this?"},
                {"type": "image_url", "image_url": {"url": "https://a.example/cat.jpg"}},
            ]},
        ]));
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
        let read = read_all(&json!([
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Porto\"}"}},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "rain"},
            {"role": "assistant", "content": null, "function_call": {"name": "weather", "arguments": {"city": "Porto"}}},
            {"role": "function", "name": "weather", "content": "sun"},
        ]));
        for call in [&read[0], &read[2]] {
            assert_eq!(call.text, "[calls weather({\"city\":\"Porto\"})]");
        }
        for result in [&read[1], &read[3]] {
            assert_eq!(
                (result.role, result.speaker.as_str()),
                (Role::Tool, "weather")
            );
        }
    }

    #[test]
    fn what_stands_beside_the_content_is_kept() {
        let read = read_all(&json!([
            {"role": "assistant", "content": null, "refusal": "I can't help with that."},
            {"role": "assistant", "content": null, "audio": {"id": "a", "data": "AA", "transcript": "Hello there"}},
        ]));
        assert_eq!(read[0].text, "I can't help with that.");
        assert_eq!(read[1].text, "Hello there");
    }

    #[test]
    fn a_part_may_stand_without_its_list_and_a_role_have_another_name() {
        let read = read_all(&json!([
            {"role": "human", "content": {"type": "text", "text": "hi"}},
            {"role": "ai", "content": ["hello", "there"]},
            {"role": "model", "name": " ", "content": "hm"},
        ]));
        let seen = read
            .iter()
            .map(|one| (one.role, one.speaker.as_str(), one.text.as_str()));
        assert_eq!(
            seen.collect::<Vec<_>>(),
            [
                (Role::User, "human", "hi"),
                (Role::Assistant, "ai", "hello\nthere"),
                (Role::Assistant, "model", "hm"),
            ]
        );
    }

    #[test]
    fn an_error_names_the_field() {
        let problem = |message| read(&message, &mut Tools::new()).unwrap_err();
        assert_eq!(
            problem(json!({"role": "bot", "content": "b"})),
            "role: \"bot\" is not a role of a chat message"
        );
        let picture = json!({"type": "image_url", "image_url": {"url": "https://a.example/r.jpg"}});
        for content in [json!(7), picture] {
            let problem = problem(json!({"role": "user", "content": content}));
            assert!(problem.starts_with("content: "), "{problem}");
        }
    }
}
