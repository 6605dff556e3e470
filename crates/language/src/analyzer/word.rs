//! Words: clitics, camelCase and letter–digit parts, stemming and accent folding.

use super::{Analyzer, Origin, cut};
use crate::fold::{lower, strip_accents};
use crate::language::Language;
use crate::spaceless::pairs;
use unicode_script::{Script, UnicodeScript};

const APOSTROPHES: &[char] = &['\'', '\u{2019}', '\u{2BC}'];

impl Analyzer {
    /// The terms of a run of word characters and apostrophes.
    pub(super) fn word(&self, word: &str, emit: &mut dyn FnMut(&str, Origin)) {
        let Some((left, right)) = word.split_once(APOSTROPHES) else {
            return self.bare_word(word, emit);
        };
        match lower(right).as_ref() {
            // English clitics and the possessive say nothing to search; "don't" becomes the stop word "dont".
            "s" | "m" | "re" | "ve" | "ll" | "d" => self.bare_word(left, emit),
            "t" => self.bare_word(&format!("{left}t"), emit),
            _ => {
                let elides = matches!(self.language, Language::French | Language::Italian);
                if !elides && !right.contains(APOSTROPHES) {
                    self.plain(&lower(&format!("{left}{right}")), emit);
                }
                self.bare_word(left, emit);
                self.word(right, emit);
            }
        }
    }

    /// A word without apostrophes: as a whole and, if it is an identifier, in its parts.
    fn bare_word(&self, word: &str, emit: &mut dyn FnMut(&str, Origin)) {
        if word.is_empty() {
            return;
        }
        if let Some(number) = ordinal(word) {
            emit(number, Origin::Content);
        }
        self.plain(&lower(word), emit);
        if ordinal(word).is_some() {
            return;
        }
        let cuts = identifier_cuts(word);
        let mut start = 0;
        for end in cuts
            .iter()
            .copied()
            .chain((!cuts.is_empty()).then_some(word.len()))
        {
            self.plain(&lower(&word[start..end]), emit);
            start = end;
        }
    }

    /// The term of a lower-cased word and, where accents decide its stem, the term of the unaccented spelling.
    pub(super) fn plain(&self, word: &str, emit: &mut dyn FnMut(&str, Origin)) {
        let word = cut(word);
        if word.is_ascii() {
            return emit(&self.stem(short_number(word)), self.origin(word));
        }
        let bare = strip_accents(word);
        let origin = self.origin(&bare);
        let bare_stem = self.stem(&bare).into_owned();
        emit(&bare_stem, origin);
        let script = word.chars().next().map(|letter| letter.script());
        if script == Some(Script::Hangul) && word.chars().nth(2).is_some() {
            // Korean particles are written onto the noun; pairs find it without them.
            pairs(word, |pair| emit(pair, origin));
        }
        if script == Some(Script::Latin) {
            let stem = self.stem(word);
            let accented_stem = strip_accents(&stem);
            if accented_stem != bare_stem {
                emit(&accented_stem, origin);
            }
        }
    }

    fn stem<'w>(&self, word: &'w str) -> std::borrow::Cow<'w, str> {
        let script = word
            .chars()
            .next()
            .map_or(Script::Common, |letter| letter.script());
        match self.stemmers.iter().find(|(of, _)| *of == script) {
            Some((_, stemmer)) if word.chars().all(char::is_alphabetic) => stemmer.stem(word),
            _ => word.into(),
        }
    }
}

/// The number of an English ordinal: `8th` → `8`.
fn ordinal(word: &str) -> Option<&str> {
    let digits = word.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let suffix = &word[digits.len()..];
    let is_ordinal = ["st", "nd", "rd", "th"]
        .iter()
        .any(|known| suffix.eq_ignore_ascii_case(known));
    let number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    (is_ordinal && number).then_some(digits)
}

/// `05` and `5` are the same day or month.
fn short_number(word: &str) -> &str {
    match word.as_bytes() {
        [b'0', digit] if digit.is_ascii_digit() => &word[1..],
        _ => word,
    }
}

/// Where an identifier's parts begin, after the first: `parseHTTPHeader2` → parse|HTTP|Header|2.
fn identifier_cuts(word: &str) -> Vec<usize> {
    let mut cuts = Vec::new();
    let letters: Vec<(usize, char)> = word.char_indices().collect();
    for (index, pair) in letters.windows(2).enumerate() {
        let ((_, left), (at, right)) = (pair[0], pair[1]);
        let next = letters.get(index + 2).map(|&(_, letter)| letter);
        let digit_edge = left.is_ascii_digit() != right.is_ascii_digit();
        let hump = left.is_lowercase() && right.is_uppercase();
        // The last capital of "HTTPServer" begins a word, that of the plural "URLs" does not.
        let plural = next == Some('s') && index + 3 == letters.len();
        let after_capitals = left.is_uppercase()
            && right.is_uppercase()
            && next.is_some_and(char::is_lowercase)
            && !plural;
        if digit_edge || hump || after_capitals {
            cuts.push(at);
        }
    }
    cuts
}
