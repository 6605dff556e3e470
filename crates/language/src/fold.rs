//! Folding: NFKC, lower case, and accents removed where they are decoration rather than letters.

use std::borrow::Cow;
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark, is_nfkc_quick};

/// Text as it is compared: NFKC, lower case, without the accents of Latin, Greek, Cyrillic (stress marks, ё), Hebrew and
/// Arabic. Marks that are letters (Indic vowel signs, й, Hangul, Thai) stay.
pub fn fold(text: &str) -> String {
    strip_accents(&lower(&normalise(text))).into_owned()
}

/// NFKC without invisible characters (soft hyphen, zero-width, direction marks). Borrowed when nothing changes.
pub(crate) fn normalise(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let quick = is_nfkc_quick(text.chars()) == unicode_normalization::IsNormalized::Yes;
    if quick && !text.contains(is_invisible) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(
        text.nfkc()
            .filter(|&letter| !is_invisible(letter))
            .collect(),
    )
}

fn is_invisible(letter: char) -> bool {
    matches!(letter,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{180B}'..='\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{E0000}'..='\u{E0FFF}')
}

pub(crate) fn lower(text: &str) -> Cow<'_, str> {
    if text
        .chars()
        .any(|letter| letter.is_uppercase() || !letter.is_ascii())
    {
        Cow::Owned(text.to_lowercase())
    } else {
        Cow::Borrowed(text)
    }
}

/// Removes accents from lower-cased text; see [`fold`].
pub(crate) fn strip_accents(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut base = ' ';
    for letter in text.nfd() {
        if is_combining_mark(letter) {
            if !is_decoration(base, letter) {
                out.push(letter);
            }
            continue;
        }
        base = letter;
        match letter {
            'ß' => out.push_str("ss"),
            'æ' => out.push_str("ae"),
            'œ' => out.push_str("oe"),
            'þ' => out.push_str("th"),
            'ø' => out.push('o'),
            'đ' | 'ð' => out.push('d'),
            'ł' => out.push('l'),
            'ı' => out.push('i'),
            'ς' => out.push('σ'),
            // The Arabic tatweel only stretches a word.
            '\u{640}' => {}
            _ => out.push(letter),
        }
    }
    Cow::Owned(out.nfc().collect())
}

/// Whether `mark` on `base` is dropped.
fn is_decoration(base: char, mark: char) -> bool {
    let latin_mark = matches!(mark, '\u{300}'..='\u{36F}');
    match base {
        'a'..='z' | '\u{C0}'..='\u{24F}' | '\u{370}'..='\u{3FF}' => latin_mark,
        '\u{400}'..='\u{52F}' => {
            matches!(mark, '\u{300}' | '\u{301}') || (base == 'е' && mark == '\u{308}')
        }
        '\u{590}'..='\u{5FF}' => matches!(mark, '\u{591}'..='\u{5C7}'),
        '\u{600}'..='\u{6FF}' => matches!(mark, '\u{64B}'..='\u{65F}' | '\u{670}'),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decoration_goes_and_letters_stay() {
        assert_eq!(fold("Réunion NAÏVE Straße"), "reunion naive strasse");
        assert_eq!(fold("Ёлка ещё война Київ"), "елка еще война київ");
        assert_eq!(fold("Ὀδυσσεύς"), "οδυσσευσ");
        assert_eq!(fold("हिन्दी 한국어 ไทย"), "हिन्दी 한국어 ไทย");
        assert_eq!(fold("ﬁne ｆｕｌｌ İstanbul"), "fine full istanbul");
        assert_eq!(fold("soft\u{AD}hy\u{200B}phen"), "softhyphen");
    }

    proptest! {
        #[test]
        fn folding_any_text_ends(text in any::<String>()) {
            let _ = fold(&text);
        }
    }
}
