//! Reading replies: the JSON in what a model said, whatever it put around it.

use serde::de::DeserializeOwned;

/// Where models that think aloud stop doing so.
const THOUGHT: &str = "</think>";

/// Why a reply means nothing. The message goes back to the model once, and nowhere else: it may hold words of the reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Misread(pub String);

/// The first JSON object of a reply.
pub fn json<T: DeserializeOwned>(reply: &str) -> Result<T, Misread> {
    let said = reply.rsplit_once(THOUGHT).map_or(reply, |(_, said)| said);
    let Some(start) = said.find('{') else {
        return Err(Misread("it holds no JSON object".to_owned()));
    };
    let mut values = serde_json::Deserializer::from_str(&said[start..]).into_iter::<T>();
    match values.next() {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) => Err(Misread(error.to_string())),
        None => Err(Misread("it holds no JSON object".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Said {
        yes: bool,
    }

    #[test]
    fn what_stands_around_an_object_does_not_matter() {
        for reply in [
            "{\"yes\":true}",
            "```json\n{\"yes\": true}\n```",
            "<think>maybe {\"yes\": false}</think>Here: {\"yes\": true} Anything else?",
            "{\"yes\": true, \"delete\": \"everything\"}",
        ] {
            assert_eq!(json(reply), Ok(Said { yes: true }), "{reply}");
        }
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for reply in [
            "",
            "yes",
            "[true]",
            "{\"yes\":",
            "{\"yes\":\"true\"}",
            "{\"no\":true}",
        ] {
            assert!(json::<Said>(reply).is_err(), "{reply}");
        }
        let deep = "{\"yes\":".repeat(100_000);
        assert!(json::<Said>(&deep).is_err());
    }
}
