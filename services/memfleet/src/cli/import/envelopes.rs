//! The lists of chat messages in a file, however they are wrapped, and the conversation that each
//! becomes. A message that cannot be read is left out and named by its place; the others do not
//! suffer for it.

use std::collections::HashMap;

use memfleet_domain::ids::SessionId;
use serde_json::{Value, json};

use super::format::{self, Document};
use super::messages::{Message, name_of, turns};
use super::{Conversation, Located};
use crate::said::fitted;

/// The tool of each call of a conversation, by the call's id.
pub type Tools<'a> = HashMap<&'a str, &'a str>;

/// Reads one message of a format.
type Reader = for<'a> fn(&'a Value, &mut Tools<'a>) -> Result<Vec<Message>, String>;

/// A list of messages and what stands around it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Envelope {
    /// Its id in the file, if it has one.
    pub name: Option<String>,
    /// Instructions stand beside the list; they are its first message.
    pub instructed: bool,
    /// The messages as they are.
    pub messages: Vec<Located<Value>>,
}

/// The lists in a file's documents: a list of messages, an object with `messages`, or several of either; a file of one
/// message a line is one list. Beside them is what is neither.
pub fn envelopes(documents: Vec<Document>) -> (Vec<Envelope>, Vec<Located<String>>) {
    let (mut found, mut left_out) = (Vec::new(), Vec::new());
    let lines = documents.len() > 1;
    if documents.iter().any(|one| is_message(&one.value)) {
        return (vec![bare(documents)], left_out);
    }
    for Document { place, value } in documents {
        let inside = |index: usize, value| match lines {
            true => Located::new(format!("{place}: messages[{index}]"), value),
            false => Located::new(format!("messages[{index}]"), value),
        };
        let located = |items: Vec<Value>| {
            let items = items.into_iter().enumerate();
            items.map(|(index, value)| inside(index, value)).collect()
        };
        match value {
            Value::Array(items) if items.iter().any(is_message) => {
                found.push(bare(located(items)));
            }
            Value::Array(items) => {
                let items = items.into_iter().enumerate();
                let item = |(index, value)| Located::new(format!("{place}[{index}]"), value);
                let (more, wrong) = several(items.map(item).collect());
                found.extend(more);
                left_out.extend(wrong);
            }
            value => match wrapped(value, located) {
                Some(envelope) => found.push(envelope),
                None => left_out.push(Located::new(
                    place,
                    "is neither a list of messages nor an object with `messages`".to_owned(),
                )),
            },
        }
    }
    (found, left_out)
}

/// Lists that stand in a list.
fn several(items: Vec<Document>) -> (Vec<Envelope>, Vec<Located<String>>) {
    let (mut found, mut left_out) = (Vec::new(), Vec::new());
    for item in items {
        let (more, wrong) = envelopes(vec![item]);
        found.extend(more);
        left_out.extend(wrong);
    }
    (found, left_out)
}

/// A list inside an object that names it.
fn wrapped(
    mut object: Value,
    located: impl Fn(Vec<Value>) -> Vec<Located<Value>>,
) -> Option<Envelope> {
    let Some(Value::Array(messages)) = object.get_mut("messages").map(Value::take) else {
        return None;
    };
    let mut names = ["id", "conversation_id"].into_iter();
    let system = object.get_mut("system").map(Value::take);
    let instructions = system.filter(|system| !system.is_null()).map(|system| {
        let message = json!({ "role": "system", "content": system });
        Located::new("system", message)
    });
    Some(Envelope {
        name: names.find_map(|key| name_of(object.get(key)?)),
        instructed: instructions.is_some(),
        messages: instructions.into_iter().chain(located(messages)).collect(),
    })
}

fn bare(messages: Vec<Located<Value>>) -> Envelope {
    Envelope {
        messages,
        ..Envelope::default()
    }
}

fn is_message(value: &Value) -> bool {
    value.get("role").is_some()
}

/// Each list as a conversation of one session, named by its id in the file, else by the file's
/// name; beside them what is no list.
pub fn conversations(
    documents: Vec<Document>,
    file: &str,
    read: Reader,
) -> (Vec<Conversation>, Vec<Located<String>>) {
    let (envelopes, left_out) = envelopes(documents);
    let several = envelopes.len() > 1;
    let conversation = |(envelope, number): (Envelope, usize)| {
        let of_file = match several {
            true => format!("{file}-{number}"),
            false => file.to_owned(),
        };
        let name = envelope.name.clone().unwrap_or(of_file);
        let mut conversation = conversation(&envelope, &name, read);
        if several {
            let within = |place: &str| format!("conversation {name}: {place}");
            for turn in &mut conversation.turns {
                turn.place = within(&turn.place);
            }
            for problem in &mut conversation.left_out {
                problem.place = within(&problem.place);
            }
        }
        conversation
    };
    let conversations = envelopes.into_iter().zip(1..).map(conversation).collect();
    (conversations, left_out)
}

fn conversation(envelope: &Envelope, name: &str, read: Reader) -> Conversation {
    let mut conversation = Conversation {
        name: name.to_owned(),
        ..Conversation::default()
    };
    let session = match SessionId::new(fitted(name, SessionId::LIMIT)) {
        Ok(session) => session,
        Err(error) => {
            let problem = format!("has a name that {error}");
            conversation
                .left_out
                .push(Located::new("the list", problem));
            return conversation;
        }
    };
    let (mut tools, mut seen) = (Tools::new(), HashMap::new());
    for Located { place, value } in &envelope.messages {
        let messages = format::whole(value).and_then(|()| read(value, &mut tools));
        let turns = messages.and_then(|messages| {
            let turns = messages
                .into_iter()
                .map(|message| turns(place, message, &session, &mut seen));
            turns.collect::<Result<Vec<_>, String>>()
        });
        match turns {
            Ok(turns) => conversation.turns.extend(turns.into_iter().flatten()),
            Err(problem) => conversation.left_out.push(Located::new(place, problem)),
        }
    }
    conversation
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::openai;
    use super::*;

    fn lines(values: Vec<Value>) -> Vec<Document> {
        let line = |(value, number)| Located::new(format!("line {number}"), value);
        values.into_iter().zip(1..).map(line).collect()
    }

    #[test]
    fn every_shape_of_list_is_found() {
        let message = json!({"role": "user", "content": "hi"});
        let object = json!({"id": 7, "messages": [message]});
        let count = |documents| {
            let (found, left_out) = envelopes(lines(documents));
            assert_eq!(left_out, []);
            let lengths = found.into_iter().map(|one| one.messages.len());
            lengths.collect::<Vec<_>>()
        };
        assert_eq!(count(vec![json!([message, message])]), [2]);
        assert_eq!(
            count(vec![message.clone(), message.clone(), message.clone()]),
            [3]
        );
        assert_eq!(count(vec![object.clone(), object.clone()]), [1, 1]);
        assert_eq!(count(vec![json!([object, [message]])]), [1, 1]);
        assert_eq!(
            envelopes(lines(vec![object])).0[0].name.as_deref(),
            Some("7")
        );
        let (found, left_out) = envelopes(lines(vec![json!({"text": "hi"})]));
        assert_eq!((found.len(), left_out.len()), (0, 1));
    }

    #[test]
    fn instructions_beside_a_list_are_its_first_message() {
        let list = json!({"system": "be kind", "messages": [{"role": "user", "content": "hi"}]});
        let (found, _) = conversations(lines(vec![list]), "talk", openai::read);
        let texts = found[0].turns.iter().map(|turn| &turn.value.content.text);
        assert_eq!(texts.collect::<Vec<_>>(), ["be kind", "hi"]);
    }

    #[test]
    fn a_message_that_cannot_be_read_is_left_out_with_its_place() {
        let (good, bad) = (
            json!({"role": "user", "content": "hi"}),
            json!({"role": "bot", "content": "hi"}),
        );
        let left_out = |documents| {
            let (found, _) = conversations(lines(documents), "talk", openai::read);
            let turns = found.iter().map(|one| one.turns.len()).sum::<usize>();
            let places = found.into_iter().flat_map(|one| one.left_out);
            (turns, places.map(|one| one.place).collect::<Vec<_>>())
        };
        assert_eq!(
            left_out(vec![json!([good, bad])]),
            (1, vec!["messages[1]".to_owned()])
        );
        assert_eq!(
            left_out(vec![good.clone(), bad.clone(), json!(7)]),
            (1, vec!["line 2".to_owned(), "line 3".to_owned()])
        );
        assert_eq!(
            left_out(vec![json!({"id": "a", "messages": [good]}), json!([bad])]),
            (
                1,
                vec!["conversation talk-2: line 2: messages[0]".to_owned()]
            )
        );
    }
}
