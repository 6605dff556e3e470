//! The lists of chat messages in a file, however they are wrapped, and the conversation that each becomes.

use memfleet_domain::ids::SessionId;
use serde_json::Value;

use super::Conversation;
use super::messages::{Message, name_of, turns};

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

/// The lists in a file's documents: a list of messages, an object with `messages`, or several of either; a file of one
/// message a line is one list.
pub fn envelopes(documents: Vec<Value>) -> Result<Vec<Envelope>, String> {
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
                let mut names = ["id", "conversation_id"].into_iter();
                found.push(Envelope {
                    name: names.find_map(|key| name_of(object.get(key)?)),
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

fn bare(messages: Vec<Value>) -> Envelope {
    Envelope {
        name: None,
        system: None,
        messages,
    }
}

fn is_message(value: &Value) -> bool {
    value.get("role").is_some()
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
}
