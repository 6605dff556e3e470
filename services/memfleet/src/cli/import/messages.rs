//! Chat messages, whoever's format they are in: from a message to turns with ids that stay the same on a second run. The
//! id comes from what the message says and how often that was said before, not from its place: a list that grew, or lost
//! its beginning, brings only what is new.

use std::collections::HashMap;

use chrono::DateTime;
use memfleet_domain::Timestamp;
use memfleet_domain::ids::SessionId;
use memfleet_domain::turn::{Media, Role};
use memfleet_ports::memory::NewTurn;
use serde_json::Value;

use super::Located;
use crate::cli::values::date_time;
use crate::said::Said;

/// A message in our words.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// In which part.
    pub role: Role,
    /// Who, as prompts will show it.
    pub speaker: String,
    /// The words.
    pub text: String,
    /// What came with them.
    pub media: Vec<Media>,
    /// The sender's own id.
    pub id: Option<String>,
    /// When it was sent.
    pub time: Option<Timestamp>,
}

/// The sender's id of a message, if it has one.
pub fn id_of(message: &Value) -> Option<String> {
    message.get("id").and_then(name_of)
}

/// A name, written as text or as a number; none where it is blank.
pub fn name_of(value: &Value) -> Option<String> {
    let name = value
        .as_str()
        .map(str::to_owned)
        .or_else(|| value.as_i64().map(|number| number.to_string()));
    name.filter(|name| !name.trim().is_empty())
}

/// The role of this name in any format: OpenAI's, Anthropic's, `LangChain`'s and Gemini's differ in
/// spelling alone.
pub fn role_of(message: &Value) -> Result<Role, String> {
    let name = message.get("role").unwrap_or(&Value::Null);
    match name.as_str() {
        Some("user" | "human") => Ok(Role::User),
        Some("assistant" | "ai" | "model") => Ok(Role::Assistant),
        Some("system" | "developer") => Ok(Role::System),
        Some("tool" | "function") => Ok(Role::Tool),
        _ => Err(format!("role: {name} is not a role of a chat message")),
    }
}

/// Seconds since 1970 lie below this for three thousand years: a larger number is of milliseconds.
const MILLISECONDS_FROM: f64 = 1e11;
/// Members of a message that say when it was sent, as exports name them.
const TIMES: [&str; 4] = ["created_at", "createdAt", "created", "timestamp"];

/// When a message was sent, where it says so: a date and time, or seconds or milliseconds since
/// 1970, as a number or a text.
pub fn time_of(message: &Value) -> Result<Option<Timestamp>, String> {
    let value = |key| Some((key, message.get(key).filter(|value| !value.is_null())?));
    let Some((key, value)) = TIMES.into_iter().find_map(value) else {
        return Ok(None);
    };
    let number = |text: &str| text.trim().parse().ok().and_then(since_1970);
    let time = match value {
        Value::String(text) => date_time(text).or_else(|| number(text)),
        value => value.as_f64().and_then(since_1970),
    };
    let wrong = || {
        format!("{key}: {value} is neither a date and time nor seconds or milliseconds since 1970")
    };
    time.ok_or_else(wrong).map(Some)
}

fn since_1970(number: f64) -> Option<Timestamp> {
    let seconds = if number.abs() < MILLISECONDS_FROM {
        number
    } else {
        number / 1e3
    };
    DateTime::from_timestamp_micros((seconds * 1e6) as i64)
}

/// The parts of a content: those of a list, or a single one that stands without a list and has
/// words.
pub fn parts(content: &Value) -> Result<&[Value], String> {
    match content {
        Value::Null => Ok(&[]),
        Value::Array(parts) => Ok(parts),
        Value::String(_) => Ok(std::slice::from_ref(content)),
        Value::Object(part) if part.get("text").is_some_and(Value::is_string) => {
            Ok(std::slice::from_ref(content))
        }
        Value::Object(_) => Err("content: is one object without `text`".to_owned()),
        _ => Err("content: is neither a text nor a list of parts".to_owned()),
    }
}

/// A tool call as words, so that search finds it. Arguments are a text, or JSON.
pub fn tool_call(name: &str, arguments: Option<&Value>) -> String {
    match arguments {
        Some(Value::String(text)) => format!("[calls {name}({text})]"),
        Some(json) => format!("[calls {name}({json})]"),
        None => format!("[calls {name}()]"),
    }
}

/// The turns of a message; none where it says nothing. `seen` counts what messages without an id
/// have said so far.
pub fn turns(
    place: &str,
    message: Message,
    session: &SessionId,
    seen: &mut HashMap<String, u32>,
) -> Result<Vec<Located<NewTurn>>, String> {
    let id = message.id.clone().unwrap_or_else(|| {
        let print = fingerprint(&message);
        let times = seen.entry(print.clone()).or_default();
        *times += 1;
        format!("{print}-{times}")
    });
    let said = Said {
        session: session.to_string(),
        id,
        speaker: message.speaker,
        role: message.role,
        text: message.text,
        media: message.media,
        time: message.time,
    };
    let turns = said.turns().map_err(|error| format!("a name {error}"))?;
    let located = |turn| Located::new(place, turn);
    Ok(turns.into_iter().map(located).collect())
}

fn fingerprint(message: &Message) -> String {
    let mut hasher = blake3::Hasher::new();
    let said = format!("{:?} {:?}", message.role, message.time);
    let uris = message.media.iter().map(|media| media.uri.as_str());
    for part in [said.as_str(), &message.speaker, &message.text]
        .into_iter()
        .chain(uris)
    {
        hasher.update(&(part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(text: &str) -> Message {
        Message {
            role: Role::User,
            speaker: "user".to_owned(),
            text: text.to_owned(),
            media: vec![],
            id: None,
            time: None,
        }
    }

    fn ids(texts: &[&str]) -> Vec<String> {
        let session = SessionId::new("s").unwrap();
        let mut seen = HashMap::new();
        let turns = texts
            .iter()
            .flat_map(|text| turns("messages[0]", said(text), &session, &mut seen).unwrap());
        turns
            .map(|turn| turn.value.external_id.unwrap().to_string())
            .collect()
    }

    #[test]
    fn a_list_that_grew_or_lost_its_beginning_keeps_its_ids() {
        let all = ids(&["hello", "ok", "ok", "bye"]);
        assert_eq!(ids(&["hello", "ok", "ok", "bye", "again"])[..4], all);
        assert_eq!(ids(&["ok", "ok", "bye"]), all[1..]);
        assert_ne!(all[1], all[2]);
    }

    #[test]
    fn empty_messages_are_left_out() {
        assert_eq!(ids(&["hello", " \n"]).len(), 1);
    }

    #[test]
    fn times_are_read_as_text_as_seconds_and_as_milliseconds() {
        let text = time_of(&json!({"timestamp": "2025-03-02T16:20:00Z"})).unwrap();
        let time = text.unwrap();
        for number in [time.timestamp(), time.timestamp_millis()] {
            assert_eq!(time_of(&json!({"created_at": number})), Ok(Some(time)));
        }
        for (key, text) in [
            ("created", "1740932400.0"),
            ("createdAt", "2025-03-02 16:20:00"),
        ] {
            assert_eq!(time_of(&json!({key: text})), Ok(Some(time)));
        }
        assert_eq!(time_of(&json!({"created_at": null})), Ok(None));
    }

    #[test]
    fn a_time_that_cannot_be_read_is_refused() {
        for value in [json!("yesterday"), json!(true), json!({})] {
            let problem = time_of(&json!({"timestamp": value})).unwrap_err();
            assert!(problem.starts_with("timestamp: "), "{problem}");
        }
    }
}
