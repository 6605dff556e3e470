//! Compounds: words joined by single signs, such as addresses, paths, versions, dates and identifiers.

use super::{Analyzer, Origin, is_word_char};
use crate::fold::fold;

/// Signs that may join the parts of a compound, outermost first: fields of addresses and paths, then of names and numbers.
const OUTER: &[char] = &['/', '\\', ':', '@', '?', '&', '=', '#', '%', '~'];
const INNER: &[char] = &['.', '-', '_', '+', ','];

/// The compounds of a chunk: word characters and what joins them. An ellipsis, a dash (`--`) and other signs separate.
pub(super) fn split(chunk: &str) -> impl Iterator<Item = &str> {
    let mut rest = chunk;
    std::iter::from_fn(move || {
        let start = rest.find(is_word_char)?;
        let end = start + length(&rest[start..]);
        let compound = &rest[start..end];
        rest = &rest[end..];
        Some(compound)
    })
}

/// The byte length of the compound at the start of `text`, at least one character.
fn length(text: &str) -> usize {
    let mut end = 0;
    let mut rest = text;
    loop {
        end += rest
            .find(|letter| !is_word_char(letter))
            .unwrap_or(rest.len());
        rest = &text[end..];
        let joiner = joiner_length(text, end);
        if joiner == 0 {
            return end;
        }
        end += joiner;
        rest = &rest[joiner..];
    }
}

/// The byte length of the joiner at `at`, 0 if what stands there separates.
fn joiner_length(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    let signs = &rest[..rest.find(is_word_char).unwrap_or(0)];
    let one_sign = signs.chars().count() == 1;
    let joins = match signs.chars().next() {
        Some('\'' | '\u{2019}' | '\u{2BC}') => one_sign,
        Some(',') => one_sign && between_digits(text, at),
        Some(sign) if INNER.contains(&sign) => one_sign || signs.chars().all(|sign| sign == '_'),
        Some(sign) if OUTER.contains(&sign) => signs
            .chars()
            .all(|sign| OUTER.contains(&sign) || INNER.contains(&sign)),
        _ => false,
    };
    if joins { signs.len() } else { 0 }
}

fn between_digits(text: &str, at: usize) -> bool {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    at > 0 && digit(at - 1) && digit(at + 1)
}

impl Analyzer {
    /// The terms of one compound: whole, then by outer and inner parts down to words.
    pub(super) fn compound(&self, compound: &str, emit: &mut dyn FnMut(&str, Origin)) {
        if let Some((date, time)) = split_timestamp(compound) {
            self.compound(date, emit);
            return self.compound(time, emit);
        }
        if !compound.contains(OUTER) {
            return self.inner(compound, emit);
        }
        whole(compound, emit);
        for part in compound.split(OUTER).filter(|part| !part.is_empty()) {
            self.inner(part, emit);
        }
    }

    fn inner(&self, compound: &str, emit: &mut dyn FnMut(&str, Origin)) {
        if !compound.contains(INNER) {
            return self.word(compound, emit);
        }
        if let Some(number) = plain_number(compound) {
            emit(&number, Origin::Content);
            let integer = number.split('.').next().unwrap_or_default();
            if integer.len() < number.len() {
                emit(integer, Origin::Content);
            }
            return;
        }
        whole(compound, emit);
        for part in compound.split(INNER).filter(|part| !part.is_empty()) {
            self.word(part, emit);
        }
    }
}

/// Emits a compound whole, unless it is two words of prose joined by a hyphen or a slash ("well-known", "and/or").
fn whole(compound: &str, emit: &mut dyn FnMut(&str, Origin)) {
    let mut parts = compound.split(['-', '/']);
    let prose = parts.by_ref().take(2).all(|part| {
        let rest = part.trim_start_matches(char::is_alphabetic);
        rest.is_empty() || rest.starts_with(['\'', '\u{2019}'])
    });
    if !(prose && parts.next().is_none()) {
        emit(&fold(compound), Origin::Content);
    }
}

/// `2023-05-08T13:56` is a date and a time.
fn split_timestamp(compound: &str) -> Option<(&str, &str)> {
    let bytes = compound.as_bytes();
    let dated = bytes.len() > 11
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && matches!(bytes[10], b'T' | b't');
    let digits = dated
        && bytes[..4]
            .iter()
            .chain(&bytes[11..12])
            .all(u8::is_ascii_digit);
    digits.then(|| (&compound[..10], &compound[11..]))
}

/// A grouped or decimal number as digits with at most one point: `1,000.50`, `1.000,50` → `1000.50`; `3,5` → `3.5`.
/// `None` for anything else, versions and dates included.
fn plain_number(text: &str) -> Option<String> {
    let is_number = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b',' | b'.'));
    if !is_number {
        return None;
    }
    let last = text.rfind([',', '.'])?;
    let (head, tail) = (&text[..last], &text[last + 1..]);
    let groups: Vec<&str> = head.split([',', '.']).collect();
    let grouped = groups[0].len() <= 3 && groups[1..].iter().all(|group| group.len() == 3);
    let one_separator = |text: &str| !(text.contains(',') && text.contains('.'));
    let sign = &text[last..=last];
    let all_groups =
        tail.len() == 3 && grouped && one_separator(text) && (groups.len() > 1 || sign == ",");
    if all_groups {
        return Some(format!("{}{tail}", groups.concat()));
    }
    let decimal = groups.len() == 1 || (grouped && one_separator(head) && !head.contains(sign));
    decimal.then(|| format!("{}.{tail}", groups.concat()))
}
