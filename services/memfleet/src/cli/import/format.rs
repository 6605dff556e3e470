//! Which format a file is in, told from what it holds.

use clap::ValueEnum;
use serde_json::Value;

use super::{Located, anthropic, envelopes};

/// The formats that `memfleet import` reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The LoCoMo data set
    Locomo,
    /// The plain evaluation format: conversations with messages and questions
    Plain,
    /// JSON lines of `memfleet export`
    Export,
    /// OpenAI message lists
    Openai,
    /// Anthropic message lists
    Anthropic,
}

impl Format {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Locomo => "locomo",
            Self::Plain => "plain",
            Self::Export => "export",
            Self::Openai => "openai",
            Self::Anthropic => "anthropic",
        }
    }
}

/// A document of a file, or a part of one, and where it stands.
pub type Document = Located<Value>;

/// Stands for what is no character (half a surrogate pair, a byte that is not UTF-8) until the
/// message that has it is known. It is no character itself: no text holds it.
const BROKEN: char = '\u{ffff}';

/// The text of a file without its byte order mark. Bytes and escapes that are no characters are
/// marked.
pub fn text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push(BROKEN);
        }
    }
    whole_pairs(text.strip_prefix('\u{feff}').unwrap_or(&text))
}

/// JSON with a mark in the place of each escape that is half a surrogate pair.
fn whole_pairs(json: &str) -> String {
    let unit = |at: usize| {
        let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut whole = String::with_capacity(json.len());
    let mut rest = 0;
    while let Some(found) = json[rest..].find('\\') {
        let at = rest + found;
        whole.push_str(&json[rest..at]);
        let length = match (unit(at), unit(at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                whole.push(BROKEN);
                rest = at + 6;
                continue;
            }
            // The character behind a backslash may be a backslash itself, or have several bytes.
            _ => json[at..].chars().take(2).map(char::len_utf8).sum(),
        };
        rest = at + length;
        whole.push_str(&json[at..rest]);
    }
    whole.push_str(&json[rest..]);
    whole
}

/// Refuses a value that holds a mark.
pub fn whole(value: &Value) -> Result<(), String> {
    match value {
        Value::String(text) => whole_text(text),
        Value::Array(items) => items.iter().try_for_each(whole),
        Value::Object(members) => members.values().try_for_each(whole),
        _ => Ok(()),
    }
}

/// Refuses a text that holds a mark.
pub fn whole_text(text: &str) -> Result<(), String> {
    match text.contains(BROKEN) {
        true => Err("holds half a surrogate pair, or bytes that are not UTF-8".to_owned()),
        false => Ok(()),
    }
}

/// A file's documents: the one that it is, or one a line. Beside them are the lines that are
/// broken.
pub fn documents(text: &str) -> Result<(Vec<Document>, Vec<Located<String>>), String> {
    let error = match serde_json::from_str(text) {
        Ok(document) => return Ok((vec![Located::new("the file", document)], vec![])),
        Err(error) => error,
    };
    let (mut documents, mut broken) = (Vec::new(), Vec::new());
    let lines = text.lines().zip(1..);
    for (line, number) in lines.filter(|(line, _)| !line.trim().is_empty()) {
        let place = format!("line {number}");
        match serde_json::from_str::<Value>(line) {
            Ok(document) => documents.push(Located::new(place, document)),
            Err(error) => broken.push(Located::new(place, format!("is not JSON ({error})"))),
        }
    }
    // A broken file is more often one document than many: only where most lines are documents is it
    // JSON lines.
    let read = documents
        .iter()
        .filter(|one| one.value.is_object() || one.value.is_array());
    match read.count() > broken.len() {
        true => Ok((documents, broken)),
        false => Err(format!("is neither JSON ({error}) nor JSON lines")),
    }
}

/// Whether there is nothing in them.
pub fn are_empty(documents: &[Document]) -> bool {
    let empty = |document: &Document| document.value.as_array().is_some_and(Vec::is_empty);
    documents.iter().all(empty)
}

/// The format of these documents. Message lists that could be either are OpenAI's.
pub fn detect(documents: &[Document]) -> Option<Format> {
    let first = &documents.first()?.value;
    let sample = first.as_array().and_then(|items| items.first());
    let has = |key: &str| sample.is_some_and(|sample| sample.get(key).is_some());
    if has("qa") && has("conversation") {
        return Some(Format::Locomo);
    }
    if has("conversation_id") && sample.is_some_and(is_plain) {
        return Some(Format::Plain);
    }
    let (lists, _) = envelopes::envelopes(documents.to_vec());
    if lists.is_empty() {
        return None;
    }
    Some(match lists.iter().any(anthropic::is_certain) {
        true => Format::Anthropic,
        false => Format::Openai,
    })
}

/// Tells a conversation of the evaluation format: it has questions, or messages with its
/// own members.
fn is_plain(conversation: &Value) -> bool {
    let messages = conversation.get("messages").and_then(Value::as_array);
    let own = |message: &Value| {
        ["speaker", "session", "time_anchor"]
            .into_iter()
            .any(|key| message.get(key).is_some())
    };
    messages
        .is_some_and(|messages| conversation.get("questions").is_some() || messages.iter().any(own))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn formats_are_told_apart() {
        let detected = |document| detect(&[Located::new("the file", document)]);
        assert_eq!(
            detected(json!([{"qa": [], "conversation": {}, "sample_id": "c"}])),
            Some(Format::Locomo)
        );
        assert_eq!(
            detected(json!([{"conversation_id": "c", "messages": [], "questions": []}])),
            Some(Format::Plain)
        );
        let said = json!({"role": "user", "content": "hi"});
        for list in [
            json!([said]),
            json!({"messages": [said]}),
            json!({"conversation_id": "c", "messages": [said]}),
            json!([{"conversation_id": "c", "messages": [said]}]),
        ] {
            assert_eq!(detected(list), Some(Format::Openai));
        }
        assert_eq!(
            detected(json!({"system": "be kind", "messages": [said]})),
            Some(Format::Anthropic)
        );
        assert_eq!(detected(json!({"text": "hi"})), None);
        assert_eq!(detect(&[]), None);
    }

    #[test]
    fn documents_are_one_or_one_a_line() {
        let count = |text| documents(text).map(|(read, broken)| (read.len(), broken.len()));
        assert_eq!(count("[1,\n2]"), Ok((1, 0)));
        assert_eq!(count("{\"a\":1}\n\n{\"a\":2}\n"), Ok((2, 0)));
        assert_eq!(count("{\"a\":1}\n{\"a\":2}\n{\"a\":"), Ok((2, 1)));
        assert!(documents("{\"a\":").unwrap_err().contains("line 1"));
        let cut = "[\n{\"a\": 1},\n{\"a\": 2}";
        assert!(documents(cut).unwrap_err().contains("nor JSON lines"));
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_text() {
        assert_eq!(text(b"\xef\xbb\xbf[]"), "[]");
    }

    #[test]
    fn what_is_no_character_is_known_where_it_stands() {
        let broken = |json: &[u8]| {
            let value = serde_json::from_str::<Value>(&text(json)).unwrap();
            whole(&value).is_err()
        };
        for json in [
            &br#"["\ud83d here"]"#[..],
            br#"["\ude00\ud83d"]"#,
            b"[\"\xff\"]",
        ] {
            assert!(broken(json), "{json:?}");
        }
        for json in [r#"["\ud83d\ude00"]"#, r#"["\\ud83d"]"#, r#"["\u00e9\"\n"]"#] {
            assert!(!broken(json.as_bytes()), "{json}");
            assert_eq!(text(json.as_bytes()), json);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_and_stays_as_it_is(said in "\\PC{0,40}", units in prop::collection::vec(0xd7f0u16..0xe010, 0..6)) {
            let json = serde_json::to_string(&said).unwrap();
            prop_assert_eq!(text(json.as_bytes()), json);
            let escapes: Vec<_> = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let escapes = escapes.concat();
            let json = format!("\"{escapes}\"");
            let read = serde_json::from_str::<Value>(&text(json.as_bytes())).unwrap();
            prop_assert_eq!(whole(&read).is_ok(), String::from_utf16(&units).is_ok());
        }
    }
}
