//! What is expected of an answer, against the answer.

use serde_json::Value;

use crate::NONCE;

/// An answer with its nonce masked, wherever it stands: the four letters that mark lines as well.
pub fn masked(answer: &Value) -> Value {
    let nonce = answer["nonce"].as_str().unwrap_or_default();
    if nonce.len() < 4 {
        return answer.clone();
    }
    let mark = format!("{}| ", &nonce[..4]);
    replaced(answer, &|text| {
        text.replace(nonce, NONCE).replace(&mark, "MARK| ")
    })
}

fn replaced(value: &Value, by: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => by(text).into(),
        Value::Array(values) => values.iter().map(|value| replaced(value, by)).collect(),
        Value::Object(members) => {
            let members = members.iter();
            let members = members.map(|(name, value)| (name.clone(), replaced(value, by)));
            Value::Object(members.collect())
        }
        other => other.clone(),
    }
}

/// What differs, with its place: nothing where the answer has all that is expected.
pub fn compare(expected: &Value, answer: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    at("", expected, answer, &mut wrong);
    wrong
}

fn at(place: &str, expected: &Value, answer: &Value, wrong: &mut Vec<String>) {
    match (expected, answer) {
        (Value::Object(expected), Value::Object(answer)) => {
            for (name, expected) in expected {
                let value = answer.get(name).unwrap_or(&Value::Null);
                at(&format!("{place}.{name}"), expected, value, wrong);
            }
        }
        (Value::Array(expected), Value::Array(answer)) if expected.len() == answer.len() => {
            for (index, (expected, answer)) in expected.iter().zip(answer).enumerate() {
                at(&format!("{place}[{index}]"), expected, answer, wrong);
            }
        }
        _ if expected == answer => {}
        _ => wrong.push(format!("{place}: expected {expected}, not {answer}")),
    }
}

/// What differs between the injections of two answers.
pub fn same_injection(one: &Value, other: &Value) -> Vec<String> {
    let fields = ["block", "edits", "injection_id", "nonce"];
    let differ = fields.iter().filter(|field| one[**field] != other[**field]);
    differ
        .map(|field| format!(".{field} is not that of the earlier step"))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_named_counts_and_lists_are_whole() {
        let answer = json!({"a": 1, "b": [{"c": "x", "d": 2}], "e": null});
        assert!(compare(&json!({"b": [{"c": "x"}]}), &answer).is_empty());
        for (expected, place) in [
            (json!({"a": 2}), ".a: "),
            (json!({"b": []}), ".b: "),
            (json!({"b": [{"c": "y"}]}), ".b[0].c: "),
            (json!({"z": 1}), ".z: expected 1, not null"),
        ] {
            let wrong = compare(&expected, &answer);
            assert!(wrong.len() == 1 && wrong[0].starts_with(place), "{wrong:?}");
        }
    }

    #[test]
    fn nonces_are_masked_and_nothing_else() {
        let answer = json!({"nonce": "abcd1234", "block": ["<abcd1234> abcd| x abcd"], "n": 1});
        let expected = json!({"nonce": "NONCE", "block": ["<NONCE> MARK| x abcd"], "n": 1});
        assert_eq!(masked(&answer), expected);
        let plain = json!({"nonce": "", "block": "x"});
        assert_eq!(masked(&plain), plain);
    }

    #[test]
    fn injections_are_the_same_to_the_byte() {
        let one = json!({"block": "a", "edits": [], "tokens": 1});
        let other = json!({"block": "a", "edits": [1], "tokens": 2});
        assert!(same_injection(&one, &one).is_empty());
        assert_eq!(same_injection(&one, &other).len(), 1);
    }
}
