//! Which format a file is in, told from what it holds.

use clap::ValueEnum;
use serde_json::Value;

use super::{anthropic, envelopes};

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

/// A file's documents: the one that it is, or one a line.
pub fn documents(text: &str) -> Result<Vec<Value>, String> {
    let whole = match serde_json::from_str(text) {
        Ok(document) => return Ok(vec![document]),
        Err(error) => error,
    };
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let read = lines
        .map(serde_json::from_str)
        .collect::<Result<Vec<Value>, _>>();
    // A file that is broken is more often one document than many: say where that one breaks.
    read.map_err(|_| format!("is neither JSON ({whole}) nor JSON lines"))
}

/// Whether there is nothing in them.
pub fn are_empty(documents: &[Value]) -> bool {
    let empty = |document: &Value| document.as_array().is_some_and(Vec::is_empty);
    documents.iter().all(empty)
}

/// The format of these documents. Message lists that could be either are OpenAI's.
pub fn detect(documents: &[Value]) -> Option<Format> {
    let first = documents.first()?;
    let sample = first
        .as_array()
        .map_or(Some(first), |items| items.first())?;
    let has = |key: &str| sample.get(key).is_some();
    if has("qa") && has("conversation") {
        return Some(Format::Locomo);
    }
    if has("conversation_id") && has("messages") {
        return Some(Format::Plain);
    }
    let lists = envelopes::envelopes(documents.to_vec()).ok()?;
    let certain = lists.iter().any(anthropic::is_certain);
    Some(if certain {
        Format::Anthropic
    } else {
        Format::Openai
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn formats_are_told_apart() {
        let detected = |document| detect(&[document]);
        assert_eq!(
            detected(json!([{"qa": [], "conversation": {}, "sample_id": "c"}])),
            Some(Format::Locomo)
        );
        assert_eq!(
            detected(json!([{"conversation_id": "c", "messages": [], "questions": []}])),
            Some(Format::Plain)
        );
        assert_eq!(
            detected(json!([{"role": "user", "content": "hi"}])),
            Some(Format::Openai)
        );
        assert_eq!(
            detected(json!({"messages": [{"role": "user", "content": "hi"}]})),
            Some(Format::Openai)
        );
        assert_eq!(
            detected(json!({"system": "be kind", "messages": [{"role": "user", "content": "hi"}]})),
            Some(Format::Anthropic)
        );
        assert_eq!(detected(json!({"text": "hi"})), None);
        assert_eq!(detect(&[]), None);
    }

    #[test]
    fn documents_are_one_or_one_a_line() {
        assert_eq!(documents("[1,\n2]").unwrap().len(), 1);
        assert_eq!(documents("{\"a\":1}\n\n{\"a\":2}\n").unwrap().len(), 2);
        assert!(documents("{\"a\":").unwrap_err().contains("line 1"));
    }
}
