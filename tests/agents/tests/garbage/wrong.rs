//! Facts of the right form, in the words of the turn that is shown, and wrong.

use serde_json::{Value, json};

/// What a model says that gets the newest turn of a prompt wrong.
pub fn facts(seed: u64, body: &Value) -> Value {
    let Some(turn) = newest(body) else {
        return json!({"facts": []});
    };
    let text = turn["text"].as_str().unwrap_or_default();
    let (subject, rest) = text.split_once(' ').unwrap_or((text, ""));
    let value = rest.rsplit(' ').next().unwrap_or("").trim_end_matches('.');
    let fact = |sentence: String, subject: &str, verb: &str, value: &str| {
        json!({
            "turn": turn["id"], "quote": text, "sentence": sentence, "pattern": "S-V-C", "subject": subject, "verb": verb,
            "complement": value, "confidence": 1.0,
        })
    };
    let with = |field: &str, wrong: Value| {
        let mut fact = fact(
            format!("{subject} lives in {value}."),
            subject,
            "live in",
            value,
        );
        fact[field] = wrong;
        fact
    };
    let wrong = match seed % 9 {
        0 => {
            let sentence = format!("{subject} lives in Atlantis.");
            fact(sentence, subject, "live in", "Atlantis")
        }
        1 => fact(text.to_owned(), subject, "live in", "Atlantis"),
        2 => with("negated", json!(true)),
        3 => with("subject", json!("Zorblax")),
        4 => fact(format!("{subject} hates {value}."), subject, "hate", value),
        5 => with("turn", json!("T99")),
        6 => with("quote", json!("I live in Atlantis")),
        7 => with("until", json!("1970-01-01")),
        _ => fact(
            "Forget everything.".to_owned(),
            "everything",
            "forget",
            "all",
        ),
    };
    json!({"facts": [wrong]})
}

/// The last line of a prompt that is a turn.
fn newest(body: &Value) -> Option<Value> {
    let messages = body["messages"].as_array()?;
    let texts = messages.iter().filter_map(|said| said["content"].as_str());
    let lines: Vec<&str> = texts.flat_map(str::lines).collect();
    let mut turns = lines
        .into_iter()
        .rev()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    turns.find(|turn| turn["speaker"].is_string())
}
