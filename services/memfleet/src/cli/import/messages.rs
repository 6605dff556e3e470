//! Chat messages, whoever's format they are in: from a message to turns with ids that stay the same on a second run. The
//! id comes from what the message says and how often that was said before, not from its place: a list that grew, or lost
//! its beginning, brings only what is new.

use std::collections::HashMap;

use chrono::DateTime;
use memfleet_domain::Timestamp;
use memfleet_domain::ids::{NameError, SessionId};
use memfleet_domain::turn::{Media, Role};
use memfleet_ports::memory::NewTurn;
use serde_json::Value;

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

/// A name, written as text or as a number.
pub fn name_of(value: &Value) -> Option<String> {
    value
        .as_str()
        .map(str::to_owned)
        .or_else(|| value.as_i64().map(|number| number.to_string()))
}

/// Seconds since 1970 lie below this for three thousand years: a larger number is of milliseconds.
const MILLISECONDS_FROM: f64 = 1e11;

/// When a message was sent, where exports say it: `created_at` or `timestamp`, RFC 3339 or seconds or milliseconds since 1970.
pub fn time_of(message: &Value) -> Result<Option<Timestamp>, String> {
    let value = |key| Some((key, message.get(key).filter(|value| !value.is_null())?));
    let Some((key, value)) = ["created_at", "timestamp"].into_iter().find_map(value) else {
        return Ok(None);
    };
    let time = match value {
        Value::String(text) => DateTime::parse_from_rfc3339(text)
            .ok()
            .map(|time| time.to_utc()),
        number => number.as_f64().and_then(since_1970),
    };
    let wrong =
        || format!("{key}: {value} is neither RFC 3339 nor seconds or milliseconds since 1970");
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

/// A tool call as words, so that search finds it.
pub fn tool_call(name: &str, arguments: &str) -> String {
    format!("[calls {name}({arguments})]")
}

/// The turns of a list; messages that say nothing are left out.
pub fn turns(messages: Vec<Message>, session: &SessionId) -> Result<Vec<NewTurn>, NameError> {
    let mut seen = HashMap::<String, u32>::new();
    let mut turns = Vec::with_capacity(messages.len());
    for message in messages {
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
        turns.extend(said.turns()?);
    }
    Ok(turns)
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
        let turns = turns(texts.iter().map(|text| said(text)).collect(), &session).unwrap();
        turns
            .into_iter()
            .map(|turn| turn.external_id.unwrap().to_string())
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
