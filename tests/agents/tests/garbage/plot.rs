//! A plot that makes sense.

use serde_json::{Value, json};

use crate::wrong::lines;

/// All fragments of a prompt as one subplot, in the first words of the first of them.
pub fn of(body: &Value) -> Value {
    let lines = lines(body);
    let shown = lines
        .iter()
        .filter_map(|line| serde_json::from_str(line).ok());
    let is_fragment = |it: &Value| it["id"].as_str().is_some_and(|it| it.starts_with('F'));
    let fragments: Vec<Value> = shown.filter(is_fragment).collect();
    let (first, last) = (fragments.first(), fragments.last());
    let text = first.and_then(|it| it["text"].as_str()).unwrap_or_default();
    let words: Vec<&str> = text.split_whitespace().skip(1).take(4).collect();
    let id = |it: Option<&Value>| it.map(|it| it["id"].clone());
    let subplot = json!({"headline": words.join(" "), "from": id(first), "to": id(last)});
    json!({"subplots": [subplot], "headline": null})
}
