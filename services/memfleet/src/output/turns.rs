//! Turns as people read them: one line that says who, when and where, then what was said.

use memfleet_domain::turn::Turn;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Palette, printable, shortened, time};

/// A turn for programs: its id is `turn_id`, as everywhere.
pub fn turn_json(turn: &impl Serialize) -> Value {
    renamed(json!(turn), "id", "turn_id")
}

/// An object with another name for one of its members, all in their places.
pub fn renamed(value: Value, from: &str, to: &str) -> Value {
    let Value::Object(members) = value else {
        return value;
    };
    let member = |(name, value): (String, Value)| match name == from {
        true => (to.to_owned(), value),
        false => (name, value),
    };
    members.into_iter().map(member).collect()
}

/// The heading of a turn with its id, and its text, indented.
pub fn turn_lines(palette: Palette, mark: &str, space: Option<&str>, turn: &Turn) -> String {
    let accepted = &turn.accepted;
    let session = printable(accepted.session.as_str());
    let place = match space {
        Some(space) => format!("{} / {session} #{}", printable(space), turn.position),
        None => format!("{session} #{}", turn.position),
    };
    let speaker = palette.strong(&printable(accepted.speaker.as_str()));
    let when = time(accepted.effective_time());
    format!(
        "{mark}{when}  {speaker}  {}  {}\n{}",
        palette.dim(&place),
        palette.dim(&accepted.id.to_string()),
        indented(&accepted.content.searchable_text())
    )
}

/// A turn that is shown around another one, on one line.
pub fn neighbour(palette: Palette, turn: &Turn) -> String {
    let text = shortened(&turn.accepted.content.searchable_text(), 100);
    palette.dim(&format!(
        "      #{} {}: {text}",
        turn.position,
        printable(turn.accepted.speaker.as_str())
    ))
}

fn indented(text: &str) -> String {
    let text = printable(text);
    text.lines()
        .map(|line| format!("    {line}").trim_end().to_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_named_by_its_turn_id_first() {
        let told = turn_json(&json!({ "id": "t1", "session": "s" }));
        assert_eq!(told.to_string(), r#"{"turn_id":"t1","session":"s"}"#);
    }
}
