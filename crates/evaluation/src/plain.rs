//! The plain format: `[{conversation_id, messages: [{id, speaker or role, session?, time_anchor?, content, caption?}],
//! questions: [{question, category, evidence_message_ids}]}]`. Users evaluate on their own conversations with it.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;

use crate::dataset::{Conversation, DatasetError, Places, Role, Turn};
use crate::time;

#[derive(Deserialize)]
struct File {
    conversation_id: Value,
    messages: Vec<Message>,
    #[serde(default)]
    questions: Vec<Asked>,
}

#[derive(Deserialize)]
struct Message {
    id: Value,
    speaker: Option<String>,
    role: Option<String>,
    session: Option<Value>,
    time_anchor: Option<String>,
    content: String,
    caption: Option<String>,
}

#[derive(Deserialize)]
struct Asked {
    question: String,
    #[serde(default)]
    category: Value,
    evidence_message_ids: Vec<Value>,
}

pub(crate) fn conversations(value: Value) -> Result<Vec<Conversation>, DatasetError> {
    let files: Vec<File> =
        serde_json::from_value(value).map_err(|error| DatasetError::Format(error.to_string()))?;
    files.into_iter().map(conversation).collect()
}

fn conversation(file: File) -> Result<Conversation, DatasetError> {
    let mut at = Place::default();
    let turns = file
        .messages
        .into_iter()
        .map(|message| at.turn(message))
        .collect::<Result<Vec<Turn>, _>>()?;
    let places = Places::of(&turns);
    let question = |asked: Asked| {
        let ids = asked.evidence_message_ids.iter().map(text);
        places.question(asked.question, text(&asked.category), ids)
    };
    let questions = file.questions.into_iter().filter_map(question).collect();
    Ok(Conversation {
        id: text(&file.conversation_id),
        turns,
        questions,
        unanswerable: Vec::new(),
    })
}

/// Where the reading stands: a message inherits what it does not say.
#[derive(Default)]
struct Place {
    session: Option<Value>,
    /// Sessions that new anchors opened.
    opened: usize,
    anchor: Option<String>,
    time: Option<DateTime<Utc>>,
}

impl Place {
    fn turn(&mut self, message: Message) -> Result<Turn, DatasetError> {
        let anchor = message
            .time_anchor
            .filter(|anchor| !anchor.trim().is_empty());
        if let Some(anchor) = anchor
            && self.anchor.as_ref() != Some(&anchor)
        {
            let unknown = || {
                DatasetError::Format(format!("`{anchor}` is not a date such as `March-15-2024`"))
            };
            self.time = Some(time::parse(&anchor).ok_or_else(unknown)?);
            self.opened += 1;
            self.anchor = Some(anchor);
        }
        if message.session.is_some() {
            self.session = message.session;
        }
        let role = message
            .role
            .as_deref()
            .or(message.speaker.as_deref())
            .and_then(Role::parse)
            .unwrap_or_default();
        let speaker = message
            .speaker
            .or(message.role)
            .filter(|speaker| !speaker.trim().is_empty());
        let unnamed =
            || DatasetError::Format("a message has neither `speaker` nor `role`".to_owned());
        Ok(Turn {
            id: text(&message.id),
            session: self
                .session
                .as_ref()
                .map_or_else(|| self.opened.to_string(), text),
            speaker: speaker.ok_or_else(unnamed)?,
            role,
            time: self.time,
            text: message.content,
            captions: message.caption.into_iter().collect(),
        })
    }
}

/// Ids may be numbers or text.
fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use crate::{Dataset, Role};

    const CHAT: &str = r#"[{
        "conversation_id": 7,
        "messages": [
            {"id": 0, "role": "user", "time_anchor": "March-15-2024", "content": "a"},
            {"id": 1, "role": "assistant", "content": "b"},
            {"id": 2, "role": "user", "time_anchor": "March-15-2024", "content": "c"},
            {"id": "3", "role": "user", "time_anchor": "April-02-2024", "content": "d"}
        ],
        "questions": [
            {"question": "q", "category": "who", "evidence_message_ids": ["3", 0, 3, 99]},
            {"question": "none", "category": "who", "evidence_message_ids": [99]}
        ]
    }]"#;

    #[test]
    fn a_new_anchor_opens_a_session_and_a_message_without_one_inherits() {
        let conversation = Dataset::parse(CHAT).unwrap().conversations.remove(0);
        let sessions: Vec<&str> = conversation
            .turns
            .iter()
            .map(|turn| turn.session.as_str())
            .collect();
        assert_eq!(sessions, ["1", "1", "1", "2"]);
        assert_eq!(conversation.turns[1].time, conversation.turns[0].time);
        assert_eq!(conversation.turns[1].role, Role::Assistant);
        assert_eq!(conversation.turns[1].speaker, "assistant");
    }

    #[test]
    fn evidence_is_found_by_number_or_text_and_unknown_ids_are_dropped() {
        let conversation = Dataset::parse(CHAT).unwrap().conversations.remove(0);
        assert_eq!(conversation.questions.len(), 1);
        assert_eq!(conversation.questions[0].evidence, [0, 3]);
    }

    #[test]
    fn without_anchors_there_is_no_time() {
        let text = r#"[{"conversation_id": "c", "messages": [
            {"id": 0, "speaker": "Ada", "session": 4, "content": "a"}], "questions": []}]"#;
        let turn = Dataset::parse(text)
            .unwrap()
            .conversations
            .remove(0)
            .turns
            .remove(0);
        assert_eq!(
            (turn.time, turn.session.as_str(), turn.role),
            (None, "4", Role::User)
        );
    }
}
