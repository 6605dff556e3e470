//! Dates in figures, the same in every language: ISO, slashes, points, CJK and Korean dates, years.

use super::{Expression, Found, Reader};
use crate::time::tokens::Kind;

impl Reader<'_> {
    pub(super) fn numeric_date(&self, at: usize) -> Found {
        self.signed_date(at).or_else(|| self.east_asian_date(at))
    }

    /// "2023-05-08", "08/05/2023", "8.5.23", "2023-05".
    fn signed_date(&self, at: usize) -> Found {
        let (first, first_digits) = self.number(at)?;
        let sign = self
            .sign(at + 1)
            .filter(|sign| matches!(sign, '-' | '/' | '.'))?;
        let (second, second_digits) = self.number(at + 2)?;
        if !self.adjoin(at, at + 2)
            || (at > 0 && self.adjoin(at - 1, at) && self.sign(at - 1) == Some(sign))
        {
            return None;
        }
        let third = self
            .number(at + 4)
            .filter(|_| self.sign(at + 3) == Some(sign) && self.adjoin(at + 2, at + 4));
        let Some((third, third_digits)) = third else {
            let year_and_month = first_digits == 4
                && second_digits == 2
                && sign == '-'
                && (1..=12).contains(&second);
            let year = year_of(first).filter(|_| year_and_month)?;
            return Some((
                Expression::Date {
                    year: Some(year),
                    month: Some(second),
                    day: None,
                },
                at + 3,
            ));
        };
        let (year, month, day) = match (first_digits, second_digits, third_digits) {
            (4, 1..=2, 1..=2) => (first, second, third),
            (1..=2, 1..=2, 4) => self.ordered(first, second, third),
            (1..=2, 1..=2, 2) if sign != '-' => self.ordered(first, second, 2000 + third),
            _ => return None,
        };
        self.date(year, month, day, at + 5)
    }

    /// Month and day of a date that ends in its year: the language's order, the other where that is no date.
    fn ordered(&self, first: u32, second: u32, year: u32) -> (u32, u32, u32) {
        let month_first = if self.month_first {
            first <= 12
        } else {
            second > 12
        };
        if month_first {
            (year, first, second)
        } else {
            (year, second, first)
        }
    }

    fn date(&self, year: u32, month: u32, day: u32, end: usize) -> Found {
        let year = year_of(year)?;
        let possible = (1..=12).contains(&month) && (1..=31).contains(&day);
        // "2023-05-08T13:56": the lexer reads the T as a word.
        let timed = matches!(&self.items.get(end), Some(item) if item.kind == Kind::Word("t".to_owned()))
            && self.adjoin(end - 1, end)
            && self.number(end + 1).is_some();
        possible.then_some((
            Expression::Date {
                year: Some(year),
                month: Some(month),
                day: Some(day),
            },
            end + 2 * usize::from(timed),
        ))
    }

    /// "2023年5月8日", "5月8日", "2023年", "2023년 5월 8일".
    fn east_asian_date(&self, at: usize) -> Found {
        let mut end = at;
        let mut part = |range: std::ops::RangeInclusive<u32>, signs: &[&str]| {
            let (value, after) = self.count(end)?;
            let signed = signs.iter().any(|sign| self.word_starts(after, sign));
            let found = (signed && range.contains(&value)).then_some(value)?;
            end = after + 1;
            Some(found)
        };
        let year = part(1000..=9999, &["年", "년"]);
        let month = part(1..=12, &["月", "월"]);
        let day = month.and_then(|_| part(1..=31, &["日", "일", "号"]));
        let year = year.and_then(year_of);
        (year.is_some() || month.is_some()).then_some((Expression::Date { year, month, day }, end))
    }

    /// A year that stands alone and is neither a price nor a count: "in 2022".
    pub(super) fn year_alone(&self, at: usize) -> Found {
        let year = self.year(at)?;
        let signed = at > 0
            && self.adjoin(at - 1, at)
            && !matches!(self.sign(at - 1), Some('(' | '"' | '\'') | None);
        let followed = matches!(self.sign(at + 1), Some('%' | '$' | '€' | ':'))
            && self.adjoin(at, at + 1)
            || self.number(at + 2).is_some()
                && self.sign(at + 1).is_some()
                && self.adjoin(at, at + 2);
        (!signed && !followed).then_some((
            Expression::Date {
                year: Some(year),
                month: None,
                day: None,
            },
            at + 1,
        ))
    }

    /// A year of four digits.
    pub(super) fn year(&self, at: usize) -> Option<i32> {
        match self.number(at)? {
            (year @ 1900..=2099, 4) => i32::try_from(year).ok(),
            _ => None,
        }
    }

    fn number(&self, at: usize) -> Option<(u32, usize)> {
        match self.items.get(at)?.kind {
            Kind::Number { value, digits } => Some((value, digits)),
            _ => None,
        }
    }

    fn word_starts(&self, at: usize, start: &str) -> bool {
        matches!(&self.items.get(at), Some(item) if matches!(&item.kind, Kind::Word(word) if word.starts_with(start)))
    }

    /// Whether the items from `first` to `last` follow each other without white space.
    fn adjoin(&self, first: usize, last: usize) -> bool {
        self.items.get(first..=last).is_some_and(|items| {
            items
                .windows(2)
                .all(|pair| pair[0].span.end == pair[1].span.start)
        })
    }
}

fn year_of(year: u32) -> Option<i32> {
    i32::try_from(year)
        .ok()
        .filter(|year| (1000..=9999).contains(year))
}
