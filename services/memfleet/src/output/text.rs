//! Values as people read them.

use memfleet_domain::Timestamp;
use serde::Serialize;
use serde_json::Value;

/// A text that cannot move the cursor or change the terminal: stored turns come from anywhere. Line breaks and tabs stay.
pub fn printable(text: &str) -> String {
    let harmless = |character: char| match character {
        '\n' | '\t' => character,
        control if control.is_control() => char::REPLACEMENT_CHARACTER,
        other => other,
    };
    text.chars().map(harmless).collect()
}

/// The beginning of a text on one line, at most `characters` long, with an ellipsis where there is more.
pub fn shortened(text: &str, characters: usize) -> String {
    let text = printable(text);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let short = text.chars().take(characters).collect::<String>();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("{short}{more}")
}

/// An instant in UTC, to the minute.
pub fn time(instant: Timestamp) -> String {
    instant.format("%Y-%m-%d %H:%M").to_string()
}

/// A number with its noun, for example `1 turn`, `2 turns`.
pub fn count(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

/// A value as JSON in which a single-precision number has the fewest digits that mean it: `json!` makes a double of it first, and
/// 0.00019999999494757503 of 0.0002.
pub fn exact(value: &impl Serialize) -> Value {
    let text = serde_json::to_vec(value).expect("what is answered can be written as JSON");
    serde_json::from_slice(&text).expect("it was just written")
}

/// A number of bytes in the unit that reads best.
pub fn size(bytes: u64) -> String {
    indicatif::HumanBytes(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_of_stored_text_do_not_reach_the_terminal() {
        assert_eq!(
            printable("a\u{1b}]0;title\u{7}b\n\tc\r"),
            "a\u{fffd}]0;title\u{fffd}b\n\tc\u{fffd}"
        );
    }

    #[test]
    fn single_precision_numbers_keep_the_digits_that_they_have() {
        let printed = |number: f32| exact(&number).to_string();
        let numbers = [0.0002, 0.02, 0.1, 1.0, -1.5, f32::MIN_POSITIVE];
        assert_eq!(
            numbers.map(printed),
            ["0.0002", "0.02", "0.1", "1.0", "-1.5", "1.1754944e-38"]
        );
        assert_eq!(exact(&[Some(0.3_f32), None]).to_string(), "[0.3,null]");
        assert_eq!(exact(&f32::NAN), Value::Null);
    }

    #[test]
    fn counts_agree_with_their_noun() {
        assert_eq!(
            [count(0, "turn"), count(1, "turn"), count(12, "turn")],
            ["0 turns", "1 turn", "12 turns"]
        );
    }
}
