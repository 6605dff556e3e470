//! Finding a quotation in the turn that it is from. Models change blanks, case and the shape of quotation marks; words they must not.

use std::ops::Range;

/// The bytes of `text` that a quotation stands for.
pub fn span(text: &str, quote: &str) -> Option<Range<u32>> {
    let quote = quote.trim();
    if quote.is_empty() {
        return None;
    }
    if let Some(start) = text.find(quote) {
        return Some(start as u32..(start + quote.len()) as u32);
    }
    let (text, quote) = (folded(text), folded(quote));
    let is_quote = |window: &[(char, Range<usize>)]| {
        let pairs = window.iter().zip(&quote);
        pairs.into_iter().all(|(left, right)| left.0 == right.0)
    };
    let found = text.windows(quote.len()).find(|window| is_quote(window))?;
    let (first, last) = (found.first()?, found.last()?);
    Some(first.1.start as u32..last.1.end as u32)
}

/// Characters that compare, each with the bytes that it is from.
fn folded(text: &str) -> Vec<(char, Range<usize>)> {
    let mut folded: Vec<(char, Range<usize>)> = Vec::new();
    for (start, character) in text.char_indices() {
        let bytes = start..start + character.len_utf8();
        let is_blank = character.is_whitespace();
        match folded.last_mut() {
            Some(last) if is_blank && last.0 == ' ' => last.1.end = bytes.end,
            _ if is_blank => folded.push((' ', bytes)),
            _ => {
                let plain = plain(character);
                folded.extend(plain.to_lowercase().map(|folded| (folded, bytes.clone())));
            }
        }
    }
    folded
}

fn plain(character: char) -> char {
    match character {
        '\u{2018}' | '\u{2019}' | '\u{201b}' | '`' => '\'',
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '«' | '»' => '"',
        '\u{2013}' | '\u{2014}' | '\u{2011}' => '-',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(text: &'static str, quote: &str) -> Option<&'static str> {
        let span = span(text, quote)?;
        Some(&text[span.start as usize..span.end as usize])
    }

    #[test]
    fn a_quotation_is_found_however_it_was_typed() {
        let text = "Well, I’ve  moved\nto Zürich — finally!";
        assert_eq!(found(text, "moved"), Some("moved"));
        assert_eq!(
            found(text, "i've moved to zürich - finally"),
            Some("I’ve  moved\nto Zürich — finally")
        );
        assert_eq!(
            found("我搬到了苏黎世。", "搬到了苏黎世"),
            Some("搬到了苏黎世")
        );
    }

    #[test]
    fn other_words_are_not_found() {
        for quote in ["", " ", "I've moved to Rome", "moved to", "!!"] {
            assert_eq!(found("I've moved.", quote), None, "{quote}");
        }
    }

    proptest! {
        #[test]
        fn what_is_found_lies_inside(text in ".{0,60}", quote in ".{0,20}") {
            if let Some(span) = span(&text, &quote) {
                prop_assert!(text.get(span.start as usize..span.end as usize).is_some());
            }
        }
    }
}
