//! The grammar of time expressions: items (phrases, numbers, signs) → expressions, longest reading first.

mod numeric;
mod reader;

use super::lexicon::{Lexicon, Meaning, Unit};
use reader::Reader;
use std::ops::Range;

/// What a text says about time, before it is placed on the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expression {
    /// A date with what was named of it; at least one part is.
    Date {
        year: Option<i32>,
        month: Option<u32>,
        day: Option<u32>,
    },
    /// A month of last (−1), this (0) or next (1) time round.
    ShiftedMonth {
        month: u32,
        shift: i32,
    },
    Season {
        season: u32,
        year: Option<i32>,
        shift: Option<i32>,
    },
    Weekday {
        weekday: u32,
        shift: Option<i32>,
    },
    /// The unit that lies so many units from now.
    Relative {
        unit: Unit,
        offset: i32,
    },
    /// So many units up to now (negative) or from now.
    Stretch {
        unit: Unit,
        count: i32,
    },
    /// Vague, or a duration: no interval.
    Unplaced,
}

/// The expressions of a text in order, not overlapping, with their bytes.
pub(super) fn expressions(text: &str, lexicon: &Lexicon) -> Vec<(Expression, Range<usize>)> {
    let reader = Reader::new(text, lexicon);
    let mut out = Vec::new();
    let mut at = 0;
    while at < reader.items.len() {
        if let Some((expression, end)) = reader.read(at) {
            out.push((
                expression,
                reader.items[at].span.start..reader.items[end - 1].span.end,
            ));
            at = end;
        } else {
            at += 1;
        }
    }
    out
}

/// What a rule found: the expression and the index of the item after it.
type Found = Option<(Expression, usize)>;

impl Reader<'_> {
    fn read(&self, at: usize) -> Found {
        self.numeric_date(at)
            .or_else(|| self.written_date(at))
            .or_else(|| self.distance(at))
            .or_else(|| self.shifted(at))
            .or_else(|| self.season(at))
            .or_else(|| self.weekday(at))
            .or_else(|| self.whole(at))
            .or_else(|| self.year_alone(at))
    }

    /// "8 May 2023", "8th of May", "May 8, 2023", "May 2023", "May".
    fn written_date(&self, at: usize) -> Found {
        if let Some((day, after)) = self.day(at) {
            let month_at = self.skip_links(after);
            if let Some((month, _)) = self.month(month_at) {
                let (year, end) = self.year_after(month_at + 1);
                return Some((
                    Expression::Date {
                        year,
                        month: Some(month),
                        day: Some(day),
                    },
                    end,
                ));
            }
        }
        let (month, everyday) = self.month(at)?;
        if let Some((day, after)) = self.day(at + 1).filter(|&(_, after)| !self.is_unit(after)) {
            let (year, end) = self.year_after(after);
            return Some((
                Expression::Date {
                    year,
                    month: Some(month),
                    day: Some(day),
                },
                end,
            ));
        }
        let (year, end) = self.year_after(at + 1);
        if let (None, Some((shift, end))) = (year, self.shift(at + 1)) {
            return Some((Expression::ShiftedMonth { month, shift }, end));
        }
        let named = year.is_some() || !everyday || self.after_preposition(at);
        named.then_some((
            Expression::Date {
                year,
                month: Some(month),
                day: None,
            },
            end,
        ))
    }

    /// "two weeks ago", "vor zwei Wochen", "in 3 days", "3 days from now"; "two weeks" alone is a duration.
    fn distance(&self, at: usize) -> Found {
        let before = self.means(at, Meaning::Before);
        let ahead = self.means(at, Meaning::Ahead);
        let prefixed = before || ahead;
        let (count, after) = self.count(at + usize::from(prefixed))?;
        let unit = self.unit(after)?;
        let end = after + 1;
        let count = i32::try_from(count).ok()?;
        let relative = |offset, end| Some((Expression::Relative { unit, offset }, end));
        if before || self.means(end, Meaning::Ago) {
            return relative(-count, end + usize::from(!before));
        }
        if self.means(end, Meaning::Hence) {
            return relative(count, end + 1);
        }
        if ahead {
            return relative(count, end);
        }
        if let Some((shift, end)) = self.shift(end).filter(|&(shift, _)| shift != 0) {
            return Some((
                Expression::Stretch {
                    unit,
                    count: shift * count,
                },
                end,
            ));
        }
        Some((Expression::Unplaced, end))
    }

    /// "last week", "next Friday", "last two weeks", "last summer", "last May".
    fn shifted(&self, at: usize) -> Found {
        let (shift, next) = self.shift(at)?;
        if let Some((count, after)) = self.count(next)
            && let Some(unit) = self.unit(after)
            && shift != 0
        {
            let count = i32::try_from(count).ok()?;
            return Some((
                Expression::Stretch {
                    unit,
                    count: shift * count,
                },
                after + 1,
            ));
        }
        let end = next + 1;
        if let Some(unit) = self.unit(next) {
            return Some((
                Expression::Relative {
                    unit,
                    offset: shift,
                },
                end,
            ));
        }
        if let Some((month, _)) = self.month(next) {
            return Some((Expression::ShiftedMonth { month, shift }, end));
        }
        self.items
            .get(next)?
            .meanings
            .iter()
            .find_map(|meaning| match *meaning {
                Meaning::Weekday(weekday, _) => Some((
                    Expression::Weekday {
                        weekday,
                        shift: Some(shift),
                    },
                    self.part(end),
                )),
                Meaning::Season(season, _) => Some((
                    Expression::Season {
                        season,
                        year: None,
                        shift: Some(shift),
                    },
                    end,
                )),
                _ => None,
            })
    }

    /// "summer", "summer of 2022", "verano pasado".
    fn season(&self, at: usize) -> Found {
        let (season, everyday) = self
            .meanings(at)
            .iter()
            .find_map(|meaning| match *meaning {
                Meaning::Season(season, everyday) => Some((season, everyday)),
                _ => None,
            })?;
        if let (Some(year), end) = self.year_after(at + 1) {
            return Some((
                Expression::Season {
                    season,
                    year: Some(year),
                    shift: None,
                },
                end,
            ));
        }
        if let Some((shift, end)) = self.shift(at + 1) {
            return Some((
                Expression::Season {
                    season,
                    year: None,
                    shift: Some(shift),
                },
                end,
            ));
        }
        let named = !everyday || self.after_preposition(at);
        named.then_some((
            Expression::Season {
                season,
                year: None,
                shift: None,
            },
            at + 1,
        ))
    }

    /// "Friday", "Friday morning", "lundi dernier".
    fn weekday(&self, at: usize) -> Found {
        let (weekday, everyday) = self
            .meanings(at)
            .iter()
            .find_map(|meaning| match *meaning {
                Meaning::Weekday(weekday, everyday) => Some((weekday, everyday)),
                _ => None,
            })?;
        let (shift, end) = self
            .shift(at + 1)
            .map_or((None, at + 1), |(shift, end)| (Some(shift), end));
        let named = !everyday || shift.is_some() || self.after_preposition(at);
        named.then(|| (Expression::Weekday { weekday, shift }, self.part(end)))
    }

    /// "yesterday", "recently", "semana pasada".
    fn whole(&self, at: usize) -> Found {
        if let Some(unit) = self.unit(at) {
            let (shift, end) = self.shift(at + 1)?;
            return Some((
                Expression::Relative {
                    unit,
                    offset: shift,
                },
                end,
            ));
        }
        self.meanings(at).iter().find_map(|meaning| match *meaning {
            Meaning::Relative(unit, offset) => {
                Some((Expression::Relative { unit, offset }, self.part(at + 1)))
            }
            Meaning::Vague => Some((Expression::Unplaced, at + 1)),
            _ => None,
        })
    }
}
