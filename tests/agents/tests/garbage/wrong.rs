//! Facts of the right form, in the words of the turn that is shown, and wrong.

use serde_json::{Value, json};

/// What a model says that gets everything wrong that it is shown: facts to compare, settlements, else turns.
pub fn reply(seed: u64, body: &Value) -> Value {
    let (news, conflicts) = (handles(body, 'N'), handles(body, 'X'));
    if !news.is_empty() {
        return contradictions(seed, &news, &handles(body, 'F'));
    }
    if !conflicts.is_empty() {
        return decisions(seed, &conflicts);
    }
    facts(seed, body)
}

/// Every new fact says of every known one that it never was, or is over.
fn contradictions(seed: u64, news: &[String], known: &[String]) -> Value {
    let relation = ["correction", "change"][(seed % 2) as usize];
    let pairs = news
        .iter()
        .flat_map(|new| known.iter().map(move |known| (new, known)));
    let pairs = pairs.map(
        |(new, known)| json!({"new": new, "known": known, "relation": relation, "confidence": 1.0}),
    );
    json!({"conflicts": pairs.collect::<Vec<_>>()})
}

/// Nothing that was settled was ever true, or all of it ended long ago.
fn decisions(seed: u64, conflicts: &[String]) -> Value {
    let (action, since) = [("correct", None), ("update", Some("1950-01-01"))][(seed % 2) as usize];
    let decisions = conflicts
        .iter()
        .map(|conflict| json!({"conflict": conflict, "action": action, "since": since}));
    json!({"decisions": decisions.collect::<Vec<_>>()})
}

/// The handles of a prompt with this letter.
fn handles(body: &Value, letter: char) -> Vec<String> {
    let shown = lines(body).into_iter().filter_map(|line| {
        let shown = serde_json::from_str::<Value>(&line).ok()?;
        Some(shown["id"].as_str()?.to_owned())
    });
    shown.filter(|handle| handle.starts_with(letter)).collect()
}

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
    let lines = lines(body);
    let mut turns = lines
        .iter()
        .rev()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    turns.find(|turn| turn["speaker"].is_string())
}

pub fn lines(body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array().into_iter().flatten();
    let texts = messages.filter_map(|said| said["content"].as_str());
    texts.flat_map(str::lines).map(str::to_owned).collect()
}
