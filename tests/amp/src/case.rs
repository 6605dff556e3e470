//! Cases as they stand in files.

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Map, Value};

/// What is shipped, by file.
const SHIPPED: [(&str, &str); 8] = [
    ("placing", include_str!("../cases/placing.json")),
    ("providers", include_str!("../cases/providers.json")),
    ("gating", include_str!("../cases/gating.json")),
    ("relevance", include_str!("../cases/relevance.json")),
    ("budget", include_str!("../cases/budget.json")),
    ("selecting", include_str!("../cases/selecting.json")),
    ("sessions", include_str!("../cases/sessions.json")),
    ("trust", include_str!("../cases/trust.json")),
];

/// A case: steps in a space that knows nothing before.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its name: lower-case letters, digits and underscores, unique.
    pub name: String,
    /// The items of AMP that it shows (docs/amp.md).
    pub items: Vec<u32>,
    /// One after the other.
    pub steps: Vec<Step>,
}

/// A step: what is remembered first, a call, and what has to come of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Turns, as `NewTurn` in JSON. The call waits for them.
    #[serde(default)]
    pub remember: Vec<Value>,
    /// Which call.
    pub call: Call,
    /// Its request in JSON. The body of a provider's request stands there as text; the space is put in where none is named.
    pub request: Map<String, Value>,
    /// What of the answer is expected, in JSON: fields that are not named may be anything, lists have exactly these elements. The patched
    /// request stands there as text. `{"error": {"code": …, "field": …}}` expects a refusal.
    pub expected: Value,
    /// The step whose block and edits this one has, byte for byte.
    pub same_as: Option<usize>,
}

/// A call of the service Assembly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// `Assemble`.
    Assemble,
    /// `Render`.
    Render,
    /// `Gate`.
    Gate,
}

impl Case {
    /// The cases of a file.
    pub fn read(json: &str) -> Result<Vec<Self>> {
        Ok(serde_json::from_str(json)?)
    }

    /// All that are shipped.
    pub fn shipped() -> Result<Vec<Self>> {
        let mut all = Vec::new();
        for (name, json) in SHIPPED {
            all.extend(Self::read(json).with_context(|| format!("cases/{name}.json"))?);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn shipped_cases_can_be_read_and_have_names_and_items() {
        let all = Case::shipped().unwrap();
        assert!((60..=120).contains(&all.len()), "{}", all.len());
        let mut names = HashSet::new();
        for case in &all {
            let in_name = |letter: u8| matches!(letter, b'a'..=b'z' | b'0'..=b'9' | b'_');
            assert!(case.name.bytes().all(in_name), "{}", case.name);
            assert!(names.insert(&case.name), "{} stands there twice", case.name);
            assert!(case.items.iter().all(|item| (1..=130).contains(item)));
            assert!(!case.items.is_empty() && !case.steps.is_empty());
        }
    }

    #[test]
    fn a_field_that_is_not_known_is_refused() {
        let case = r#"[{"name": "a", "items": [1], "steps": [], "note": ""}]"#;
        assert!(Case::read(case).unwrap_err().to_string().contains("note"));
    }
}
