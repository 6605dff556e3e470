//! Comparing what is set on the server with what this build would set.

use serde_json::{Map, Value};

/// A setting that is not as this build makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The stream or consumer; the server itself for its limits.
    pub place: String,
    /// The setting.
    pub field: String,
    /// What is there.
    pub found: String,
    /// What this build would set.
    pub expected: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            place,
            field,
            found,
            expected,
        } = self;
        write!(
            formatter,
            "{place}: {field} is {found}, expected {expected}"
        )
    }
}

/// Adds where `found` is not as `expected`.
pub fn compare(
    place: &str,
    found: &Map<String, Value>,
    expected: &Map<String, Value>,
    differences: &mut Vec<Difference>,
) {
    for (field, expected) in expected {
        // Begins a stream and is no setting of it.
        if field == "first_seq" {
            continue;
        }
        let found = found.get(field).unwrap_or(&Value::Null);
        // The server leaves out what is not set.
        let is_unset = found.is_null() && matches!(expected, Value::Bool(false));
        if found != expected && !is_unset {
            differences.push(Difference {
                place: place.to_owned(),
                field: field.clone(),
                found: found.to_string(),
                expected: expected.to_string(),
            });
        }
    }
}
