//! Models that do not take tools, remembered for a while (AMP item 25). Plain data: the caller keeps it and brings the time.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most models that are remembered; the one that expires first gives way.
const MAX_MODELS: usize = 1_000;

/// What is remembered, by model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejections {
    until: BTreeMap<String, DateTime<Utc>>,
}

impl Rejections {
    /// Remembers that a model does not take tools, for `span` from `now` on.
    pub fn note(&mut self, model: &str, now: DateTime<Utc>, span: TimeDelta) {
        self.until.retain(|_, until| *until > now);
        let until = now
            .checked_add_signed(span)
            .unwrap_or(DateTime::<Utc>::MAX_UTC);
        self.until.insert(model.to_owned(), until);
        if self.until.len() > MAX_MODELS {
            let first = self.until.iter().min_by_key(|(_, until)| **until);
            if let Some(first) = first.map(|(model, _)| model.clone()) {
                self.until.remove(&first);
            }
        }
    }

    /// Whether the model is known not to take tools.
    pub fn rejects(&self, model: &str, now: DateTime<Utc>) -> bool {
        self.until.get(model).is_some_and(|until| *until > now)
    }
}

/// Whether a provider's error says that the model takes no tools: a client error whose words speak of tools or functions and of not
/// supporting them. Anything else is an error like any other.
pub fn is_of_tools(status: u16, body: &[u8]) -> bool {
    if !matches!(status, 400 | 404 | 405 | 422 | 501) {
        return false;
    }
    // The words stand early; a long body is a page of HTML.
    let text = String::from_utf8_lossy(&body[..body.len().min(16_384)]).to_lowercase();
    let of_tools = ["tool", "function call", "function_call", "functioncalling"];
    let refused = [
        "not support",
        "unsupported",
        "not enabled",
        "not available",
        "not allowed",
        "unknown",
        "unrecognized",
        "extra inputs",
        "invalid schema",
        "requires --enable-auto-tool-choice",
        "no endpoints found",
    ];
    of_tools.iter().any(|word| text.contains(word))
        && refused.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amp_025_a_rejection_is_remembered_until_it_expires() {
        let now = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        let mut rejections = Rejections::default();
        rejections.note("small", now, TimeDelta::hours(1));
        assert!(rejections.rejects("small", now + TimeDelta::minutes(59)));
        assert!(!rejections.rejects("small", now + TimeDelta::hours(1)));
        assert!(!rejections.rejects("large", now));
        rejections.note("eternal", now, TimeDelta::MAX);
        assert!(rejections.rejects("eternal", now + TimeDelta::days(100_000)));
        let kept: Rejections =
            serde_json::from_str(&serde_json::to_string(&rejections).unwrap()).unwrap();
        assert_eq!(kept, rejections);
        for number in 0..2_000 {
            rejections.note(&number.to_string(), now, TimeDelta::seconds(number + 1));
        }
        assert!(rejections.until.len() <= MAX_MODELS);
    }

    #[test]
    fn amp_025_errors_of_tools_are_told_from_others() {
        let ollama = br#"{"error":"registry.ollama.ai/library/gemma:2b does not support tools"}"#;
        let openai = br#"{"error":{"message":"Unrecognized request argument supplied: tools"}}"#;
        assert!(is_of_tools(400, ollama));
        assert!(is_of_tools(400, openai));
        assert!(is_of_tools(
            404,
            b"No endpoints found that support tool use"
        ));
        assert!(!is_of_tools(500, ollama));
        assert!(!is_of_tools(429, b"tool calls not available: rate limit"));
        assert!(!is_of_tools(400, b"max_tokens is too large"));
        assert!(!is_of_tools(400, &vec![0xff; 100_000]));
    }
}
