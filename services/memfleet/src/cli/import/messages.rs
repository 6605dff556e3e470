//! Lists of chat messages, whoever's format they are in: from a message to turns with ids that stay the same on a second
//! run. The id comes from what the message says and how often that was said before, not from its place: a list that grew,
//! or lost its beginning, brings only what is new.

use std::collections::HashMap;

use chrono::DateTime;
use memfleet_domain::Timestamp;
use memfleet_domain::ids::{ExternalId, NameError, SessionId, Speaker};
use memfleet_domain::turn::{Content, Media, Role, Trust};
use memfleet_ports::memory::NewTurn;
use memfleet_rpc::limits;
use serde_json::Value;

use super::Conversation;

/// A list of messages and what stands around it.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    /// Its id in the file, if it has one.
    pub name: Option<String>,
    /// Instructions beside the list.
    pub system: Option<Value>,
    /// The messages as they are.
    pub messages: Vec<Value>,
}

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

/// The lists in a file's documents: a list of messages, an object with `messages`, or several of either; a file of one
/// message a line is one list.
pub fn envelopes(documents: Vec<Value>) -> Result<Vec<Envelope>, String> {
    let bare = |messages| Envelope {
        name: None,
        system: None,
        messages,
    };
    if documents.len() > 1 && documents.iter().all(is_message) {
        return Ok(vec![bare(documents)]);
    }
    let mut found = Vec::new();
    for document in documents {
        match document {
            Value::Array(items) if items.iter().all(is_message) => found.push(bare(items)),
            Value::Array(items) => found.extend(envelopes(items)?),
            Value::Object(mut object) => {
                let Some(Value::Array(messages)) = object.remove("messages") else {
                    return Err("an object has no list `messages`".to_owned());
                };
                let name = ["id", "conversation_id"]
                    .into_iter()
                    .find_map(|key| name_of(object.get(key)?));
                found.push(Envelope {
                    name,
                    system: object.remove("system"),
                    messages,
                });
            }
            _ => {
                return Err(
                    "holds neither a list of messages nor an object with `messages`".to_owned(),
                );
            }
        }
    }
    Ok(found)
}

/// Each list as a conversation of one session, named by its id in the file, else by the file's name.
pub fn conversations(
    documents: Vec<Value>,
    file: &str,
    read: impl Fn(&Envelope) -> Result<Vec<Message>, String>,
) -> Result<Vec<Conversation>, String> {
    let envelopes = envelopes(documents)?;
    let several = envelopes.len() > 1;
    let conversation = |(envelope, number): (Envelope, usize)| {
        let of_file = if several {
            format!("{file}-{number}")
        } else {
            file.to_owned()
        };
        let name = envelope.name.clone().unwrap_or(of_file);
        let named = |problem: String| {
            if several {
                format!("conversation {name}: {problem}")
            } else {
                problem
            }
        };
        let session = SessionId::new(&*name).map_err(|error| named(format!("its name {error}")))?;
        let turns = turns(read(&envelope).map_err(named)?, &session);
        Ok(Conversation {
            turns: turns.map_err(|error| named(format!("a name {error}")))?,
            name: name.clone(),
        })
    };
    envelopes.into_iter().zip(1..).map(conversation).collect()
}

fn is_message(value: &Value) -> bool {
    value.get("role").is_some()
}

fn name_of(value: &Value) -> Option<String> {
    value
        .as_str()
        .map(str::to_owned)
        .or_else(|| value.as_i64().map(|number| number.to_string()))
}

/// The sender's id of a message, if it has one.
pub fn id_of(message: &Value) -> Option<String> {
    message.get("id").and_then(name_of)
}

/// When a message was sent, where exports say it: `created_at` or `timestamp`, RFC 3339 or seconds since 1970.
pub fn time_of(message: &Value) -> Option<Timestamp> {
    let value = ["created_at", "timestamp"]
        .into_iter()
        .find_map(|key| message.get(key))?;
    match value {
        Value::String(text) => DateTime::parse_from_rfc3339(text)
            .ok()
            .map(|time| time.to_utc()),
        number => DateTime::from_timestamp_micros((number.as_f64()? * 1e6) as i64),
    }
}

/// A tool call as words, so that search finds it.
pub fn tool_call(name: &str, arguments: &str) -> String {
    format!("[calls {name}({arguments})]")
}

/// A reference to something that is not text. What is inlined, or too long for a reference, is named by its hash.
pub fn media(uri: &str, mime_type: &str, caption: &str) -> Media {
    let inline = uri
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once([';', ',']));
    let mime_type = inline.map_or(mime_type, |(mime_type, _)| mime_type);
    let uri = match inline.is_some() || uri.len() > limits::URI {
        true => format!("urn:blake3:{}", blake3::hash(uri.as_bytes()).to_hex()),
        false => uri.to_owned(),
    };
    Media {
        uri,
        mime_type: mime_type.to_owned(),
        caption: caption.to_owned(),
    }
}

/// The turns of a list; messages without words and without media are left out.
pub fn turns(messages: Vec<Message>, session: &SessionId) -> Result<Vec<NewTurn>, NameError> {
    let mut seen = HashMap::<String, u32>::new();
    let mut turns = Vec::with_capacity(messages.len());
    for message in messages
        .into_iter()
        .filter(|message| !message.text.trim().is_empty() || !message.media.is_empty())
    {
        let id = message.id.clone().unwrap_or_else(|| {
            let print = fingerprint(&message);
            let times = seen.entry(print.clone()).or_default();
            *times += 1;
            format!("{print}-{times}")
        });
        let speaker = Speaker::new(message.speaker)?;
        let (texts, media) = (
            pieces(&message.text),
            message.media.chunks(limits::MEDIA).collect::<Vec<_>>(),
        );
        for number in 0..texts.len().max(media.len()) {
            let id = if number == 0 {
                id.clone()
            } else {
                format!("{id}/{}", number + 1)
            };
            turns.push(NewTurn {
                session: session.clone(),
                external_id: Some(ExternalId::new(id)?),
                speaker: speaker.clone(),
                role: message.role,
                content: Content {
                    text: texts.get(number).copied().unwrap_or_default().to_owned(),
                    media: media.get(number).copied().unwrap_or_default().to_vec(),
                },
                event_time: message.time,
                metadata: std::collections::BTreeMap::new(),
                trust: Trust::of_role(message.role),
                replaces: None,
            });
        }
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

/// A text in pieces that turns can hold, cut after a line break, else after white space, else anywhere.
pub fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while rest.len() > limits::TEXT {
        let end = (0..=limits::TEXT)
            .rev()
            .find(|end| rest.is_char_boundary(*end))
            .unwrap_or(0);
        let head = &rest[..end];
        let cut = head
            .rfind('\n')
            .or_else(|| head.rfind(' '))
            .map_or(end, |at| at + 1);
        pieces.push(&rest[..cut]);
        rest = &rest[cut..];
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
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
    fn every_shape_of_list_is_found() {
        let message = json!({"role": "user", "content": "hi"});
        let object = json!({"id": 7, "messages": [message]});
        let count = |documents| {
            envelopes(documents)
                .unwrap()
                .into_iter()
                .map(|one| one.messages.len())
                .collect::<Vec<_>>()
        };
        assert_eq!(count(vec![json!([message, message])]), [2]);
        assert_eq!(
            count(vec![message.clone(), message.clone(), message.clone()]),
            [3]
        );
        assert_eq!(count(vec![object.clone(), object.clone()]), [1, 1]);
        assert_eq!(count(vec![json!([object, [message]])]), [1, 1]);
        assert_eq!(
            envelopes(vec![object]).unwrap()[0].name.as_deref(),
            Some("7")
        );
        assert!(envelopes(vec![json!({"text": "hi"})]).is_err());
    }

    #[test]
    fn inlined_media_become_a_stable_reference() {
        let inlined = media("data:image/png;base64,AAAA", "", "an image");
        assert!(inlined.uri.starts_with("urn:blake3:"));
        assert_eq!(inlined.mime_type, "image/png");
        assert_eq!(
            media("https://a.example/b.png", "", "").uri,
            "https://a.example/b.png"
        );
    }

    #[test]
    fn times_are_read_as_text_and_as_seconds() {
        let text = time_of(&json!({"timestamp": "2025-03-02T16:20:00Z"})).unwrap();
        assert_eq!(
            time_of(&json!({"created_at": text.timestamp()})),
            Some(text)
        );
        assert_eq!(time_of(&json!({"created_at": null})), None);
    }

    proptest! {
        #[test]
        fn pieces_hold_the_whole_text_and_fit(text in "(\\PC|\n| ){0,40}", times in 1usize..4000) {
            let text = text.repeat(times);
            let pieces = pieces(&text);
            prop_assert!(pieces.iter().all(|piece| piece.len() <= limits::TEXT));
            prop_assert_eq!(pieces.concat(), text);
        }
    }
}
