//! An utterance as tokens that are compared with phrases: words without case, accents, width and invisible characters; single characters
//! of scripts that are written without spaces; emoji.

use std::iter;

use memfleet_language::fold;

use super::characters::{
    is_emoji, is_invisible, is_punctuation, is_question_mark, is_spaceless, is_word,
};

/// Faces of punctuation and letters, as they stand between spaces.
const EMOTICONS: &[&str] = &[
    ":)", ":-)", ":))", ":)))", ";)", ";-)", ":D", ":-D", ":d", "=)", "=D", ":p", ":P", ":-P",
    ":-p", ":(", ":-(", ":'(", ":o", ":O", "<3", "</3", "^^", "^_^", "xD", "XD", "T_T", "._.",
    "-_-", "(:", "(=", ":3", "\\o/", "o/", "o7", ":*", ":-*", "^.^", ">.<", ":')",
];

/// Whether it is a face such as `:-)`.
pub fn is_emoticon(chunk: &str) -> bool {
    EMOTICONS.contains(&chunk)
}

/// One token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// As it is compared; empty for an emoji.
    pub word: String,
    /// Written like a name: a capital, then small letters.
    pub is_title: bool,
    /// Punctuation, the end of a line or of the text comes after it.
    pub is_last: bool,
}

impl Token {
    fn word(raw: &str) -> Self {
        let mut letters = raw.chars();
        let starts_high = letters.next().is_some_and(char::is_uppercase);
        let mut rest = letters.filter(|letter| letter.is_alphabetic()).peekable();
        let is_title = starts_high && rest.peek().is_some() && rest.all(|it| !it.is_uppercase());
        Self {
            word: fold(raw),
            is_title,
            is_last: false,
        }
    }

    fn emoji() -> Self {
        Self {
            word: String::new(),
            is_title: false,
            is_last: true,
        }
    }

    /// Whether it is an emoji or an emoticon.
    pub fn is_emoji(&self) -> bool {
        self.word.is_empty()
    }
}

/// A text as tokens.
#[derive(Debug, Default)]
pub struct Tokens {
    /// In reading order.
    pub tokens: Vec<Token>,
    /// Whether there is a question mark.
    pub asks: bool,
    /// Whether there are signs that no pleasantry has: of code, mathematics or addresses.
    pub has_signs: bool,
}

impl Tokens {
    /// Reads a text.
    pub fn read(text: &str) -> Self {
        let mut reading = Self::default();
        for line in text.lines() {
            for chunk in line.split_whitespace() {
                reading.chunk(chunk);
            }
            reading.close();
        }
        reading.join_letters();
        reading
    }

    /// What stands between two spaces.
    fn chunk(&mut self, chunk: &str) {
        if is_emoticon(chunk) {
            self.close();
            return self.tokens.push(Token::emoji());
        }
        let mut word = String::new();
        let mut letters = chunk.chars().filter(|&it| !is_invisible(it)).peekable();
        while let Some(letter) = letters.next() {
            let is_inside = !word.is_empty() && letters.peek().copied().is_some_and(is_word);
            if is_spaceless(letter) {
                self.end(&mut word);
                self.tokens
                    .push(Token::word(letter.encode_utf8(&mut [0; 4])));
            } else if is_emoji(letter) {
                self.end(&mut word);
                self.asks |= is_question_mark(letter);
                self.tokens.push(Token::emoji());
            } else if is_word(letter) {
                word.push(letter);
            } else if !(is_inside && matches!(letter, '\'' | '’' | '`' | '´')) {
                self.end(&mut word);
                self.separator(letter);
            }
        }
        self.end(&mut word);
    }

    fn separator(&mut self, letter: char) {
        self.asks |= is_question_mark(letter);
        self.has_signs |= !is_punctuation(letter);
        if !matches!(letter, '-' | '‐') {
            self.close();
        }
    }

    fn end(&mut self, word: &mut String) {
        if !word.is_empty() {
            self.tokens.push(Token::word(word));
            word.clear();
        }
    }

    fn close(&mut self) {
        if let Some(token) = self.tokens.last_mut() {
            token.is_last = true;
        }
    }

    /// "T H X" is "THX".
    fn join_letters(&mut self) {
        let is_letter = |token: &Token| token.word.len() == 1;
        if self.tokens.len() > 2 && self.tokens.iter().all(is_letter) {
            let word = self.tokens.iter().map(|token| token.word.as_str());
            let mut joined = Token::word(&word.collect::<String>());
            joined.is_last = true;
            self.tokens = vec![joined];
        }
    }
}

/// A word as it is, then with what is drawn out made shorter: "heyyy", "heyy", "hey". Letters that come twice are drawn out nowhere.
pub fn spellings(word: &str) -> impl Iterator<Item = String> {
    let shorter = [2, 1].into_iter().filter_map(|most| shortened(word, most));
    iter::once(word.to_owned()).chain(shorter)
}

/// The word with letters that come three times or more in a row `most` times; none if there are none.
fn shortened(word: &str, most: usize) -> Option<String> {
    let mut out = String::with_capacity(word.len());
    let mut letters = word.chars().peekable();
    let mut is_shorter = false;
    while let Some(letter) = letters.next() {
        let mut run = 1;
        while letters.next_if_eq(&letter).is_some() {
            run += 1;
        }
        is_shorter |= run > 2;
        let kept = if run > 2 { most } else { run };
        out.extend(iter::repeat_n(letter, kept));
    }
    is_shorter.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let tokens = Tokens::read(text).tokens;
        tokens.into_iter().map(|token| token.word).collect()
    }

    #[test]
    fn case_accents_width_and_invisible_characters_do_not_count() {
        assert_eq!(
            words("Ｔｈａｎｋｓ, DANKE schön!"),
            ["thanks", "danke", "schon"]
        );
        assert_eq!(words("t\u{200b}h\u{200b}x"), ["thx"]);
        assert_eq!(words("what's up"), ["whats", "up"]);
        assert_eq!(words("T  H  X"), ["thx"]);
        assert_eq!(words("谢谢 you"), ["谢", "谢", "you"]);
    }

    #[test]
    fn drawn_out_letters_are_made_shorter() {
        assert_eq!(
            spellings("heyyy").collect::<Vec<_>>(),
            ["heyyy", "heyy", "hey"]
        );
        assert_eq!(spellings("hello").collect::<Vec<_>>(), ["hello"]);
    }

    #[test]
    fn names_and_ends_are_seen() {
        let tokens = Tokens::read("hi Anna! RRF").tokens;
        assert!(tokens[1].is_title && tokens[1].is_last);
        assert!(!tokens[2].is_title);
        assert!(!tokens[0].is_last);
    }
}
