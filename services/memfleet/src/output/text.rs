//! Values as people read them.

use memfleet_domain::Timestamp;

/// A text that cannot move the cursor or change the terminal: stored turns come from anywhere. Line breaks and tabs stay.
pub fn printable(text: &str) -> String {
    let harmless = |character: char| match character {
        '\n' | '\t' => character,
        control if control.is_control() => char::REPLACEMENT_CHARACTER,
        other => other,
    };
    text.chars().map(harmless).collect()
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

/// A single-precision number without the digits that it does not have.
pub fn decimal(number: f32) -> f64 {
    (f64::from(number) * 1e6).round() / 1e6
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
    fn counts_agree_with_their_noun() {
        assert_eq!(
            [count(0, "turn"), count(1, "turn"), count(12, "turn")],
            ["0 turns", "1 turn", "12 turns"]
        );
    }
}
