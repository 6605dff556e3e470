//! Texts that a vocabulary cannot read: their vectors say nothing.

use memfleet_encoder::Tokens;

/// Fewest letters that tell how a script is cut.
const LETTERS: usize = 3;

/// True for letters whose pieces are unknown by more than half, or that are spelled one by one:
/// less than 1.2 letters a piece. Of texts in languages that a model was trained on none is, of
/// others in a script of their own nearly all are (docs/benchmarks.md, Languages). Scripts with
/// words of one character do not count.
pub(crate) fn is_illegible(letters: &str, tokens: &Tokens) -> bool {
    let (mut count, mut short) = (0, 0);
    for character in letters.chars().filter(|c| c.is_alphabetic()) {
        match has_short_words(character) {
            true => short += 1,
            false => count += 1,
        }
    }
    let is_spelled = count >= LETTERS && short == 0 && 5 * count < 6 * tokens.pieces().len();
    tokens.are_mostly_unknown() || is_spelled
}

/// True for the scripts of Chinese, Japanese and Korean.
fn has_short_words(character: char) -> bool {
    matches!(u32::from(character), 0x1100..=0x11FF | 0x3040..=0x318F | 0x3400..=0x9FFF | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF | 0xFF66..=0xFF9D | 0x20000..=0x3FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_pieces(text: &str, count: u32) -> bool {
        is_illegible(text, &Tokens::of_ids((0..count).collect()))
    }

    #[test]
    fn texts_that_are_spelled_are_illegible() {
        assert!(in_pieces("где мой ключ", 10));
        assert!(!in_pieces("где мой ключ", 5));
        assert!(!in_pieces("where is my key?", 5));
    }

    #[test]
    fn words_of_one_character_and_few_letters_are_legible() {
        assert!(!in_pieces("我的猫叫豆豆", 6));
        assert!(!in_pieces("猫 mao", 4));
        assert!(!in_pieces("C", 1) && !in_pieces("", 0));
    }
}
