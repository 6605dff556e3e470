//! The tokens time expressions are made of: numbers, folded words, signs.

use crate::fold::fold;
use crate::spaceless::Spaceless;
use std::ops::Range;
use unicode_normalization::char::is_combining_mark;

/// One token and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) span: Range<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// At most nine ASCII digits; longer runs are words.
    Number {
        value: u32,
        digits: usize,
    },
    /// A folded run of letters; one letter where scripts are written without spaces.
    Word(String),
    Sign(char),
}

/// Cuts a text into tokens; white space only separates.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut out = Vec::new();
    let mut letters = text.char_indices().peekable();
    while let Some((start, first)) = letters.next() {
        if first.is_whitespace() {
            continue;
        }
        let class = Class::of(first);
        let mut end = start + first.len_utf8();
        while let Some(&(at, letter)) = letters.peek() {
            if !class.continues(letter) {
                break;
            }
            end = at + letter.len_utf8();
            letters.next();
        }
        out.push(Token {
            kind: kind(&text[start..end], first, class),
            span: start..end,
        });
    }
    out
}

fn kind(text: &str, first: char, class: Class) -> Kind {
    match class {
        Class::Sign => Kind::Sign(if matches!(first, '\u{2019}' | '\u{2BC}') {
            '\''
        } else {
            first
        }),
        Class::Digits if text.len() <= 9 => Kind::Number {
            value: text.parse().expect("at most nine ASCII digits are a u32"),
            digits: text.len(),
        },
        Class::Digits => Kind::Word(text.to_owned()),
        Class::Letters | Class::SingleLetter => Kind::Word(fold(text)),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Digits,
    Letters,
    SingleLetter,
    Sign,
}

impl Class {
    fn of(letter: char) -> Self {
        if letter.is_ascii_digit() {
            Self::Digits
        } else if Spaceless::of(letter).is_some() {
            Self::SingleLetter
        } else if letter.is_alphanumeric() {
            Self::Letters
        } else {
            Self::Sign
        }
    }

    fn continues(self, letter: char) -> bool {
        match self {
            Self::Digits => letter.is_ascii_digit(),
            Self::Letters => Self::of(letter) == Self::Letters || is_combining_mark(letter),
            Self::SingleLetter | Self::Sign => false,
        }
    }
}
