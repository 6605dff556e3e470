//! Configuration as people see it: the effective values as TOML, and the list of keys that the documentation must name.

use serde::Serialize;
use serde_json::Value;

use super::layers::join;

/// The values as a TOML document with secrets masked; options that are not set are left out.
pub fn to_toml<T: Serialize>(config: &T) -> String {
    toml::to_string_pretty(&without_nulls(tree(config)))
        .expect("configuration is made of tables, texts, numbers and flags")
}

/// The value without options that are not set, for which TOML has no word.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(section) => {
            let set = section.into_iter().filter(|(_, value)| !value.is_null());
            set.map(|(key, value)| (key, without_nulls(value)))
                .collect()
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

/// Every key with its value as TOML would write it, in order of declaration; `none` for an option that is not set.
/// Called with the defaults this is the table that `docs/configuration.md` is tested against.
pub fn leaves<T: Serialize>(config: &T) -> Vec<(String, String)> {
    let mut found = Vec::new();
    collect("", &tree(config), &mut found);
    found
}

/// The serialised form that layers are merged into.
pub(super) fn tree<T: Serialize>(config: &T) -> Value {
    serde_json::to_value(config).expect("configuration is made of tables, texts, numbers and flags")
}

/// A value as TOML would write it.
pub(super) fn literal(value: &Value) -> String {
    if value.is_null() {
        "none".to_owned()
    } else {
        value.to_string()
    }
}

fn collect(prefix: &str, value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(section) if !section.is_empty() => {
            for (key, value) in section {
                collect(&join(prefix, key), value, found);
            }
        }
        leaf => found.push((prefix.to_owned(), literal(leaf))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_that_are_not_set_are_left_out_at_every_depth() {
        let config = json!({ "a": null, "b": { "c": null, "d": 1 }, "e": [{ "f": null, "g": 2 }] });
        let shown: Value = toml::from_str(&to_toml(&config)).unwrap();
        assert_eq!(shown, json!({ "b": { "d": 1 }, "e": [{ "g": 2 }] }));
    }
}
