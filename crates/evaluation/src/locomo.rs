//! The LoCoMo format (Maharana et al. 2024): `conversation` with `session_N` and `session_N_date_time`, and `qa`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::dataset::{Conversation, DatasetError, Places, Question, Role, Turn};
use crate::time;

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    sample_id: Value,
    conversation: BTreeMap<String, Value>,
    qa: Vec<Asked>,
}

#[derive(Deserialize)]
struct Said {
    speaker: String,
    dia_id: String,
    #[serde(default)]
    text: String,
    blip_caption: Option<String>,
}

#[derive(Deserialize)]
struct Asked {
    question: String,
    category: u8,
    #[serde(default)]
    evidence: Vec<Value>,
}

pub(crate) fn conversations(value: Value) -> Result<Vec<Conversation>, DatasetError> {
    let files: Vec<File> = serde_json::from_value(value).map_err(|error| format_error(&error))?;
    files.into_iter().map(conversation).collect()
}

fn conversation(file: File) -> Result<Conversation, DatasetError> {
    let number = |key: &String| key.strip_prefix("session_")?.parse::<u32>().ok();
    let mut sessions: Vec<u32> = file.conversation.keys().filter_map(number).collect();
    sessions.sort_unstable();
    let mut turns = Vec::new();
    for session in sessions {
        let date = file
            .conversation
            .get(&format!("session_{session}_date_time"))
            .and_then(Value::as_str);
        let unknown =
            |date: &str| DatasetError::Format(format!("`{date}` is not a date of a session"));
        let time = date
            .map(|date| time::parse(date).ok_or_else(|| unknown(date)))
            .transpose()?;
        let said = file.conversation[&format!("session_{session}")].clone();
        let said: Vec<Said> = serde_json::from_value(said).map_err(|error| format_error(&error))?;
        turns.extend(said.into_iter().map(|said| Turn {
            id: said.dia_id,
            session: session.to_string(),
            speaker: said.speaker,
            role: Role::User,
            time,
            text: said.text,
            captions: said.blip_caption.into_iter().collect(),
        }));
    }
    let places = Places::of(&turns);
    let (adversarial, asked): (Vec<_>, Vec<_>) =
        file.qa.into_iter().partition(|asked| asked.category == 5);
    let questions = asked
        .into_iter()
        .filter_map(|asked| question(asked, &places))
        .collect();
    let id = file.sample_id.as_str().unwrap_or_default().to_owned();
    Ok(Conversation {
        id,
        turns,
        questions,
        unanswerable: adversarial.into_iter().map(|it| it.question).collect(),
    })
}

/// A question of categories 1 to 4; the fifth, adversarial, has no answer in the conversation.
fn question(asked: Asked, places: &Places<'_>) -> Option<Question> {
    let category = match asked.category {
        1 => "multi-hop",
        2 => "temporal",
        3 => "open-domain",
        4 => "single-hop",
        _ => return None,
    };
    let evidence: Vec<String> = asked
        .evidence
        .iter()
        .filter_map(Value::as_str)
        .flat_map(turn_ids)
        .collect();
    places.question(asked.question, category.to_owned(), evidence)
}

/// The ids in a piece of evidence, which may hold several, or be malformed: `D8:6; D9:17`, `D:11:26`, `D30:05`.
fn turn_ids(text: &str) -> Vec<String> {
    let numbers = |part: &str| -> Option<String> {
        let mut numbers = part
            .split(|letter: char| !letter.is_ascii_digit())
            .filter(|digits| !digits.is_empty());
        let session: u32 = numbers.next()?.parse().ok()?;
        let turn: u32 = numbers.next()?.parse().ok()?;
        Some(format!("D{session}:{turn}"))
    };
    text.split('D').filter_map(numbers).collect()
}

fn format_error(error: &serde_json::Error) -> DatasetError {
    DatasetError::Format(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dataset;

    #[test]
    fn malformed_evidence_is_read_leniently() {
        assert_eq!(turn_ids("D8:6; D9:17"), ["D8:6", "D9:17"]);
        assert_eq!(turn_ids("D:11:26"), ["D11:26"]);
        assert_eq!(turn_ids("D30:05"), ["D30:5"]);
        assert_eq!(turn_ids("D"), Vec::<String>::new());
    }

    #[test]
    fn sessions_are_in_order_of_their_numbers_and_adversarial_questions_are_apart() {
        let text = r#"[{"sample_id": "c-1", "conversation": {
            "speaker_a": "Ada", "speaker_b": "Ben",
            "session_10_date_time": "2:00 pm on 9 May, 2023",
            "session_10": [{"speaker": "Ben", "dia_id": "D10:1", "text": "Look", "blip_caption": "a boat"}],
            "session_2_date_time": "1:56 pm on 8 May, 2023",
            "session_2": [{"speaker": "Ada", "dia_id": "D2:1", "text": "Hi"}],
            "session_3_date_time": "1:56 pm on 8 May, 2023"
        }, "qa": [
            {"question": "q1", "category": 2, "evidence": ["D10:1; D2:1"], "answer": 4},
            {"question": "q2", "category": 5, "evidence": ["D2:1"]},
            {"question": "q3", "category": 4, "evidence": ["D99:1"]}
        ]}]"#;
        let conversation = Dataset::parse(text).unwrap().conversations.remove(0);
        let ids: Vec<&str> = conversation
            .turns
            .iter()
            .map(|turn| turn.id.as_str())
            .collect();
        assert_eq!(ids, ["D2:1", "D10:1"]);
        assert_eq!(
            conversation.turns[1].searchable_text(),
            "Look [shares a boat]"
        );
        assert_eq!(conversation.questions.len(), 1);
        assert_eq!(conversation.unanswerable, ["q2"]);
        assert_eq!(conversation.questions[0].category, "temporal");
        assert_eq!(conversation.questions[0].evidence, [0, 1]);
    }
}
