//! Kinds of characters, and texts without any that says something.

use unicode_normalization::char::is_combining_mark;

use super::tokens::is_emoticon;

/// Whether it is part of a word in some script.
pub fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || is_combining_mark(letter)
}

/// Whether nothing is seen of it: controls, joiners, direction and tag marks, fillers, variation selectors.
pub fn is_invisible(letter: char) -> bool {
    (letter.is_control() && !letter.is_whitespace())
        || matches!(letter,
            '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180B}'..='\u{180E}'
            | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}'
            | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{E0000}'..='\u{E0FFF}')
}

/// Whether it is an emoji or a part of one (skin tones, hearts, signs of the symbol blocks).
pub fn is_emoji(letter: char) -> bool {
    matches!(letter, '\u{1F000}'..='\u{1FAFF}' | '\u{2600}'..='\u{27BF}' | '\u{2B50}' | '\u{2B55}')
}

/// Whether it only separates: no sign of code, mathematics or addresses.
pub fn is_punctuation(letter: char) -> bool {
    matches!(letter,
        '.' | ',' | ';' | ':' | '!' | '?' | '\'' | '"' | '(' | ')' | '-' | '~' | '&' | '*' | '_' | '¡' | '¿' | '·' | '«' | '»' | '´'
        | '؟' | '،' | '؛' | '۔' | '।' | '॥' | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205E}'
        | '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}' | '\u{3014}'..='\u{301F}' | '\u{FF01}' | '\u{FF07}'..='\u{FF09}'
        | '\u{FF0C}' | '\u{FF0E}' | '\u{FF1A}' | '\u{FF1B}' | '\u{FF1F}' | '\u{FF5E}' | '\u{FF61}'..='\u{FF65}' | '・')
}

/// Whether it asks, in any script.
pub fn is_question_mark(letter: char) -> bool {
    matches!(
        letter,
        '?' | '？' | '؟' | '¿' | ';' | '⁇' | '⁈' | '⁉' | '❓' | '❔' | '⸮'
    )
}

/// Tells a text with a question mark at the end of a word: in an address one stands within. Greek
/// writes a semicolon.
pub fn asks(text: &str) -> bool {
    let is_greek = |letter: char| matches!(letter, '\u{370}'..='\u{3FF}' | '\u{1F00}'..='\u{1FFF}');
    let mut before = ' ';
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let is_inside = letters.peek().is_some_and(char::is_ascii_alphanumeric);
        let is_mark = is_question_mark(letter) && (letter != ';' || is_greek(before));
        if is_mark && !is_inside {
            return true;
        }
        before = letter;
    }
    false
}

/// Whether no character of it says anything: spaces, invisible ones, punctuation that is no emoticon.
pub fn is_empty(text: &str) -> bool {
    let says_nothing =
        |letter: char| letter.is_whitespace() || is_invisible(letter) || is_punctuation(letter);
    text.chars().all(says_nothing) && !text.split_whitespace().any(is_emoticon)
}

/// Whether it belongs to a script that is written without spaces: each character is then a token of its own.
pub fn is_spaceless(letter: char) -> bool {
    matches!(letter,
        '\u{E00}'..='\u{EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}' | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30FF}'
        | '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{FF66}'..='\u{FF9F}' | '\u{20000}'..='\u{3FFFF}')
}
