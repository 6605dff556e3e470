//! What a data set is, whatever format it came in.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::{locomo, plain};

/// Conversations with questions whose evidence is known.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Dataset {
    /// In the order of the file.
    pub conversations: Vec<Conversation>,
}

/// One conversation: the memory that its questions are asked of.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conversation {
    /// Its name in the file.
    pub id: String,
    /// In the order in which they were said, session by session.
    pub turns: Vec<Turn>,
    /// Questions with at least one known evidence turn.
    pub questions: Vec<Question>,
    /// Questions whose answer is not in the conversation, though they sound as if it were.
    pub unanswerable: Vec<String>,
}

/// One turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// Its id in the file.
    pub id: String,
    /// Name of its session, unique in the conversation.
    pub session: String,
    /// Who spoke; the role where the file names nobody.
    pub speaker: String,
    /// In which part.
    pub role: Role,
    /// When; absent where the file does not say.
    pub time: Option<DateTime<Utc>>,
    /// The words.
    pub text: String,
    /// Captions of what came with them.
    pub captions: Vec<String>,
}

/// The part of a speaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// A person.
    #[default]
    User,
    /// The model.
    Assistant,
    /// Instructions.
    System,
    /// What a tool gave back.
    Tool,
}

impl Role {
    /// The role of this name, if it is one.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "user" | "human" => Some(Self::User),
            "assistant" | "ai" => Some(Self::Assistant),
            "system" => Some(Self::System),
            "tool" | "function" => Some(Self::Tool),
            _ => None,
        }
    }
}

/// A question and the turns that hold its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// As asked.
    pub text: String,
    /// Its kind, by the name the data set's paper uses.
    pub category: String,
    /// Places of the evidence in [`Conversation::turns`], ascending, distinct, never empty.
    pub evidence: Vec<usize>,
}

/// Why a file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// It cannot be opened or read.
    #[error("{path} cannot be read: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is not JSON.
    #[error("not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// It is JSON of another shape.
    #[error("not a known evaluation format: {0}")]
    Format(String),
}

impl Dataset {
    /// Reads a file; the format is detected.
    pub fn load(path: &Path) -> Result<Self, DatasetError> {
        let text = std::fs::read_to_string(path).map_err(|source| DatasetError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text)
    }

    /// Reads the text of a file: a list of conversations in the LoCoMo format (each with `qa`) or the plain format (each with
    /// `messages`).
    pub fn parse(text: &str) -> Result<Self, DatasetError> {
        let value: Value = serde_json::from_str(text)?;
        let first = value.as_array().and_then(|list| list.first());
        let has = |key| first.and_then(|first| first.get(key)).is_some();
        let conversations = if has("qa") {
            locomo::conversations(value)?
        } else if has("messages") {
            plain::conversations(value)?
        } else {
            let expected = "a list of conversations, each with `messages` or `qa`";
            return Err(DatasetError::Format(format!("expected {expected}")));
        };
        Ok(Self { conversations })
    }

    /// Turns of all conversations.
    pub fn turns(&self) -> usize {
        self.conversations
            .iter()
            .map(|conversation| conversation.turns.len())
            .sum()
    }

    /// Questions of all conversations.
    pub fn questions(&self) -> usize {
        self.conversations
            .iter()
            .map(|conversation| conversation.questions.len())
            .sum()
    }
}

impl Conversation {
    /// Each session as a conversation of its own, with the questions that it answers alone, in the order of the sessions.
    pub fn sessions(&self) -> Vec<Self> {
        let mut sessions: Vec<(Self, Vec<usize>)> = Vec::new();
        for (place, turn) in self.turns.iter().enumerate() {
            let is_its =
                |(session, _): &(Self, Vec<usize>)| session.turns[0].session == turn.session;
            let at = sessions.iter().position(is_its).unwrap_or_else(|| {
                let id = format!("{}/{}", self.id, turn.session);
                let session = Self {
                    id,
                    ..Self::default()
                };
                sessions.push((session, Vec::new()));
                sessions.len() - 1
            });
            let (session, places) = &mut sessions[at];
            session.turns.push(turn.clone());
            places.push(place);
        }
        let with_questions = |(session, places): (Self, Vec<usize>)| Self {
            questions: self
                .questions
                .iter()
                .filter_map(|question| question.among(&places))
                .collect(),
            ..session
        };
        sessions.into_iter().map(with_questions).collect()
    }
}

impl Question {
    /// The same about some of the turns, which are named in ascending order; none where evidence is missing there.
    fn among(&self, places: &[usize]) -> Option<Self> {
        let moved = |place: &usize| places.binary_search(place).ok();
        Some(Self {
            evidence: self.evidence.iter().map(moved).collect::<Option<_>>()?,
            ..self.clone()
        })
    }
}

impl Turn {
    /// What search indexes: the words, then each caption as `[shares …]`.
    pub fn searchable_text(&self) -> String {
        let mut text = self.text.clone();
        for caption in self
            .captions
            .iter()
            .map(|caption| caption.trim())
            .filter(|caption| !caption.is_empty())
        {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str("[shares ");
            text.push_str(caption);
            text.push(']');
        }
        text
    }
}

/// Finds evidence by the ids that turns have in the file.
pub(crate) struct Places<'a>(HashMap<&'a str, usize>);

impl<'a> Places<'a> {
    pub(crate) fn of(turns: &'a [Turn]) -> Self {
        Self(
            turns
                .iter()
                .enumerate()
                .map(|(place, turn)| (turn.id.as_str(), place))
                .collect(),
        )
    }

    /// A question about the turns with these ids; ids that name no turn are dropped, and a question without any left too.
    pub(crate) fn question(
        &self,
        text: String,
        category: String,
        ids: impl IntoIterator<Item = String>,
    ) -> Option<Question> {
        let mut evidence: Vec<usize> = ids
            .into_iter()
            .filter_map(|id| self.0.get(id.as_str()).copied())
            .collect();
        evidence.sort_unstable();
        evidence.dedup();
        (!evidence.is_empty()).then_some(Question {
            text,
            category,
            evidence,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_shapes_are_refused_with_what_was_expected() {
        assert!(matches!(Dataset::parse("{"), Err(DatasetError::Json(_))));
        for text in ["{}", "[]", "[1]", "[{\"turns\": []}]"] {
            let error = Dataset::parse(text).unwrap_err().to_string();
            assert!(error.contains("`messages` or `qa`"), "{error}");
        }
    }

    #[test]
    fn a_session_has_the_questions_that_it_answers_alone() {
        let text = r#"[{"conversation_id": "c", "messages": [
            {"id": 1, "speaker": "Ada", "session": "s1", "content": "one"},
            {"id": 2, "speaker": "Ben", "session": "s2", "content": "two"},
            {"id": 3, "speaker": "Ada", "session": "s2", "content": "three"}],
            "questions": [
            {"question": "q1", "category": "x", "evidence_message_ids": [3]},
            {"question": "q2", "category": "x", "evidence_message_ids": [1, 2]}]}]"#;
        let sessions = Dataset::parse(text).unwrap().conversations[0].sessions();
        let turns: Vec<usize> = sessions.iter().map(|it| it.turns.len()).collect();
        assert_eq!(turns, [1, 2]);
        assert!(sessions[0].questions.is_empty());
        assert_eq!(sessions[1].questions.len(), 1);
        assert_eq!(sessions[1].questions[0].evidence, [1]);
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = Dataset::load(Path::new("nowhere.json")).unwrap_err();
        assert!(error.to_string().starts_with("nowhere.json cannot be read"));
    }
}
