//! The words of time, per language, read from `data/time/*.txt`.
//!
//! A line is `kind [value]: phrase, phrase…`; for whole expressions `relative unit offset: …`. A phrase may be several words; `?` after it says that it is also an everyday
//! word, which counts only beside a number, a preposition or a word like "last".

use super::tokens::{Kind, tokens};
use crate::language::Language;
use std::collections::HashMap;
use std::sync::LazyLock;

/// What a phrase means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// 1 to 12; `true` if the word is also an everyday word.
    Month(u32, bool),
    /// 1 = Monday to 7 = Sunday.
    Weekday(u32, bool),
    /// 1 = spring to 4 = winter.
    Season(u32, bool),
    Unit(Unit),
    /// A whole expression: so many units from now.
    Relative(Unit, i32),
    /// "last" −1, "this" 0, "next" 1.
    Shift(i32),
    /// "ago", after the duration.
    Ago,
    /// "vor", "hace": ago, before the duration.
    Before,
    /// "in", "dentro de": from now, before the duration.
    Ahead,
    /// "from now", after the duration.
    Hence,
    /// Morning, evening…
    Part,
    Preposition,
    /// What may stand between day, month and year: "of", "de".
    Link,
    Number(u32),
    /// "th" after a day.
    Ordinal,
    /// "recently": a time expression without an interval.
    Vague,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Hour,
    Day,
    Weekend,
    Week,
    Month,
    Year,
}

/// The tokens of a phrase and what it may mean.
type Phrase = (Vec<String>, Vec<Meaning>);

/// Phrases by their first token, longest first.
#[derive(Debug, Default)]
pub(super) struct Lexicon {
    phrases: HashMap<String, Vec<Phrase>>,
    /// Numeric dates put the month first.
    pub(super) month_first: bool,
}

impl Lexicon {
    /// The longest phrase that `next` (the texts of the following tokens) begins with: its length in tokens, its meanings.
    pub(super) fn longest(&self, next: &[String]) -> Option<(usize, &[Meaning])> {
        let phrases = self.phrases.get(next.first()?)?;
        let (words, meanings) = phrases.iter().find(|(words, _)| next.starts_with(words))?;
        Some((words.len(), meanings))
    }

    fn read(tables: &[&str], month_first: bool) -> Self {
        let mut lexicon = Self {
            month_first,
            ..Self::default()
        };
        for line in tables.iter().flat_map(|table| table.lines()) {
            let (head, phrases) = line
                .split_once(':')
                .expect("a line of a time table has a colon");
            for phrase in phrases.split(',').map(str::trim) {
                let everyday = phrase.ends_with('?');
                let meaning =
                    meaning(head, everyday).expect("a line of a time table has a known kind");
                lexicon.add(phrase.trim_end_matches('?'), meaning);
            }
        }
        for phrases in lexicon.phrases.values_mut() {
            phrases.sort_by_key(|(words, _)| std::cmp::Reverse(words.len()));
        }
        lexicon
    }

    fn add(&mut self, phrase: &str, meaning: Meaning) {
        let words: Vec<String> = tokens(phrase)
            .iter()
            .map(|token| key(&token.kind))
            .collect();
        let Some(first) = words.first() else { return };
        let same_start = self.phrases.entry(first.clone()).or_default();
        match same_start.iter_mut().find(|(known, _)| *known == words) {
            Some((_, meanings)) => meanings.push(meaning),
            None => same_start.push((words, vec![meaning])),
        }
    }
}

/// The text a token is looked up by.
pub(super) fn key(kind: &Kind) -> String {
    match kind {
        Kind::Number { value, .. } => value.to_string(),
        Kind::Word(word) => word.clone(),
        Kind::Sign(sign) => sign.to_string(),
    }
}

fn meaning(head: &str, everyday: bool) -> Option<Meaning> {
    let mut parts = head.split(' ');
    let kind = parts.next()?;
    let value = parts.next().unwrap_or_default();
    let number = || value.parse::<u32>().ok();
    Some(match kind {
        "unit" => Meaning::Unit(unit(value)?),
        "relative" => Meaning::Relative(unit(value)?, parts.next()?.parse().ok()?),
        "month" => Meaning::Month(number()?, everyday),
        "weekday" => Meaning::Weekday(number()?, everyday),
        "season" => Meaning::Season(number()?, everyday),
        "number" => Meaning::Number(number()?),
        "shift" => Meaning::Shift(value.parse().ok()?),
        "ago" => Meaning::Ago,
        "before" => Meaning::Before,
        "ahead" => Meaning::Ahead,
        "hence" => Meaning::Hence,
        "part" => Meaning::Part,
        "preposition" => Meaning::Preposition,
        "link" => Meaning::Link,
        "ordinal" => Meaning::Ordinal,
        "vague" => Meaning::Vague,
        _ => return None,
    })
}

fn unit(name: &str) -> Option<Unit> {
    Some(match name {
        "hour" => Unit::Hour,
        "day" => Unit::Day,
        "weekend" => Unit::Weekend,
        "week" => Unit::Week,
        "month" => Unit::Month,
        "year" => Unit::Year,
        _ => return None,
    })
}

/// The lexicon of a language, read on first use; languages without a table have the CJK words and numeric dates.
pub(super) fn of(language: Language) -> &'static Lexicon {
    const CJK: &str = include_str!("../../data/time/cjk.txt");
    macro_rules! lexicon {
        ($file:literal, $month_first:literal) => {{
            static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
                Lexicon::read(
                    &[include_str!(concat!("../../data/time/", $file)), CJK],
                    $month_first,
                )
            });
            &LEXICON
        }};
    }
    match language {
        Language::Dutch => lexicon!("nl.txt", false),
        Language::English => lexicon!("en.txt", true),
        Language::French => lexicon!("fr.txt", false),
        Language::German => lexicon!("de.txt", false),
        Language::Italian => lexicon!("it.txt", false),
        Language::Portuguese => lexicon!("pt.txt", false),
        Language::Spanish => lexicon!("es.txt", false),
        _ => {
            static NUMERIC: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::read(&[CJK], false));
            &NUMERIC
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_reads_and_names_all_months_and_weekdays() {
        for language in Language::ALL {
            let meanings: Vec<Meaning> = of(language)
                .phrases
                .values()
                .flatten()
                .flat_map(|(_, meanings)| meanings.clone())
                .collect();
            for weekday in 1..=7 {
                assert!(
                    meanings.iter().any(
                        |meaning| matches!(meaning, Meaning::Weekday(day, _) if *day == weekday)
                    )
                );
            }
        }
        for month in 1..=12 {
            let english = of(Language::English);
            assert!(english.phrases.values().flatten().any(|(_, meanings)| {
                meanings
                    .iter()
                    .any(|meaning| matches!(meaning, Meaning::Month(found, _) if *found == month))
            }));
        }
    }
}
