//! Time in text: which calendar intervals an expression names, seen from an instant in a time zone.
//!
//! Words come from small tables per language (`data/time`); numeric and CJK dates are understood in every language. Text is
//! lexed once, read by a small grammar, and resolved against `now`.

mod calendar;
mod grammar;
mod lexicon;
mod tokens;

use crate::language::Language;
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use std::ops::Range;

/// How wide an interval its expression means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Granularity {
    /// A calendar day, or several in a row ("the last 3 days").
    Day,
    /// Saturday and Sunday.
    Weekend,
    /// Monday to Sunday, or several weeks.
    Week,
    /// A calendar month, or several.
    Month,
    /// Three months of the northern meteorological year; winter 2022 begins in December 2022.
    Season,
    /// A calendar year, or several.
    Year,
}

/// A time expression resolved to an interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Start of the interval: local midnight.
    pub start: DateTime<Utc>,
    /// End of the interval, exclusive: local midnight.
    pub end: DateTime<Utc>,
    /// The width the expression means.
    pub granularity: Granularity,
    /// The expression named no year (or, for a weekday, no week): this is the most recent such interval that has begun.
    pub recurring: bool,
    /// Bytes of the text.
    pub span: Range<usize>,
}

/// The intervals a text names, in order of appearance. `now` and `zone` place relative expressions and midnights; `language`
/// chooses the words and the order of numeric dates (month first in English, as far as that is a date, else day first).
/// Expressions outside the calendar are left out.
pub fn references(text: &str, now: DateTime<Utc>, zone: Tz, language: Language) -> Vec<Reference> {
    let today = now.with_timezone(&zone).date_naive();
    let found = grammar::expressions(text, lexicon::of(language));
    let resolve = |(expression, span): (grammar::Expression, Range<usize>)| {
        let days = calendar::resolve(expression, today)?;
        Some(Reference {
            start: calendar::midnight(days.start, zone)?,
            end: calendar::midnight(days.end, zone)?,
            granularity: days.granularity,
            recurring: days.recurring,
            span,
        })
    };
    found.into_iter().filter_map(resolve).collect()
}

/// How many time expressions a text has, vague ones ("recently") and durations ("two weeks") included: a sign that it
/// states something.
pub fn count_expressions(text: &str, language: Language) -> usize {
    grammar::expressions(text, lexicon::of(language)).len()
}

#[cfg(test)]
mod tests;
