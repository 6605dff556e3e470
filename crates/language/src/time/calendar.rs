//! The calendar: expressions → intervals of whole days around today.

use super::Granularity;
use super::grammar::Expression;
use super::lexicon::Unit;
use chrono::{DateTime, Datelike, Days, Months, NaiveDate, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

/// Whole days, end exclusive.
pub(super) struct Interval {
    pub(super) start: NaiveDate,
    pub(super) end: NaiveDate,
    pub(super) granularity: Granularity,
    pub(super) recurring: bool,
}

/// Places an expression on the calendar; `None` if it has no place there (31 February, 10 million years ago).
pub(super) fn resolve(expression: Expression, today: NaiveDate) -> Option<Interval> {
    match expression {
        Expression::Date { year, month, day } => date(year, month, day, today),
        Expression::ShiftedMonth { month, shift } => shifted_month(month, shift, today),
        Expression::Season {
            season,
            year,
            shift,
        } => season_of(season, year, shift, today),
        Expression::Weekday { weekday, shift } => weekday_of(weekday, shift, today),
        Expression::Relative { unit, offset } => relative(unit, offset, today),
        Expression::Stretch { unit, count } => stretch(unit, count, today),
        Expression::Unplaced => None,
    }
}

/// The instant of local midnight, or the first instant after it where a clock change skips it.
pub(super) fn midnight(date: NaiveDate, zone: Tz) -> Option<DateTime<Utc>> {
    let midnight = date.and_hms_opt(0, 0, 0)?;
    let local = (0..=4).find_map(|half_hours| {
        let time = midnight.checked_add_signed(TimeDelta::minutes(30 * half_hours))?;
        zone.from_local_datetime(&time).earliest()
    });
    // A zone that skipped a whole day (Samoa, 2011) falls back to the same date in UTC.
    Some(local.map_or_else(|| midnight.and_utc(), |time| time.to_utc()))
}

fn days(start: NaiveDate, count: u64, granularity: Granularity) -> Option<Interval> {
    let end = start.checked_add_days(Days::new(count))?;
    Some(Interval {
        start,
        end,
        granularity,
        recurring: false,
    })
}

fn months(start: NaiveDate, count: u32, granularity: Granularity) -> Option<Interval> {
    let end = start.checked_add_months(Months::new(count))?;
    Some(Interval {
        start,
        end,
        granularity,
        recurring: false,
    })
}

fn date(
    year: Option<i32>,
    month: Option<u32>,
    day: Option<u32>,
    today: NaiveDate,
) -> Option<Interval> {
    let in_year = |year| match (month, day) {
        (Some(month), Some(day)) => days(
            NaiveDate::from_ymd_opt(year, month, day)?,
            1,
            Granularity::Day,
        ),
        (Some(month), None) => months(
            NaiveDate::from_ymd_opt(year, month, 1)?,
            1,
            Granularity::Month,
        ),
        (None, _) => months(NaiveDate::from_ymd_opt(year, 1, 1)?, 12, Granularity::Year),
    };
    match year {
        Some(year) => in_year(year),
        None => most_recent(in_year, today),
    }
}

/// The latest yearly interval that has begun; 29 February may be up to eight years back.
fn most_recent(in_year: impl Fn(i32) -> Option<Interval>, today: NaiveDate) -> Option<Interval> {
    let begun = |year| in_year(year).filter(|interval| interval.start <= today);
    let interval = (0..=8).find_map(|back| begun(today.year() - back))?;
    Some(Interval {
        recurring: true,
        ..interval
    })
}

/// The month named: "last" the latest that is over, "this" the one of this year, "next" the next to begin.
fn shifted_month(month: u32, shift: i32, today: NaiveDate) -> Option<Interval> {
    let in_year = |year| {
        months(
            NaiveDate::from_ymd_opt(year, month, 1)?,
            1,
            Granularity::Month,
        )
    };
    shifted_yearly(in_year, shift, today)
}

fn season_of(
    season: u32,
    year: Option<i32>,
    shift: Option<i32>,
    today: NaiveDate,
) -> Option<Interval> {
    let in_year = |year| {
        months(
            NaiveDate::from_ymd_opt(year, season * 3, 1)?,
            3,
            Granularity::Season,
        )
    };
    match (year, shift) {
        (Some(year), _) => in_year(year),
        (None, Some(shift)) => shifted_yearly(in_year, shift, today),
        (None, None) => most_recent(in_year, today),
    }
}

fn shifted_yearly(
    in_year: impl Fn(i32) -> Option<Interval>,
    shift: i32,
    today: NaiveDate,
) -> Option<Interval> {
    let year = today.year();
    match shift {
        ..0 => [year, year - 1, year - 2]
            .into_iter()
            .filter_map(in_year)
            .find(|interval| interval.end <= today),
        0 => in_year(year),
        1.. => [year, year + 1]
            .into_iter()
            .filter_map(in_year)
            .find(|interval| interval.start > today),
    }
}

/// "last Friday" lies before today, "next Friday" after it, "this Friday" in this week; "Friday" is the latest, today included.
fn weekday_of(weekday: u32, shift: Option<i32>, today: NaiveDate) -> Option<Interval> {
    let today_is = today.weekday().number_from_monday();
    let since = u64::from((today_is + 7 - weekday) % 7);
    let start = match shift {
        None => today.checked_sub_days(Days::new(since)),
        Some(..0) => today.checked_sub_days(Days::new(if since == 0 { 7 } else { since })),
        Some(0) => monday(today)?.checked_add_days(Days::new(u64::from(weekday - 1))),
        Some(1..) => today.checked_add_days(Days::new(7 - since)),
    };
    let interval = days(start?, 1, Granularity::Day)?;
    Some(Interval {
        recurring: shift.is_none(),
        ..interval
    })
}

fn monday(date: NaiveDate) -> Option<NaiveDate> {
    date.checked_sub_days(Days::new(u64::from(date.weekday().num_days_from_monday())))
}

/// The calendar unit that holds the instant `offset` units from now.
fn relative(unit: Unit, offset: i32, today: NaiveDate) -> Option<Interval> {
    let day = moved(unit, offset, today)?;
    match unit {
        Unit::Hour | Unit::Day => days(day, 1, Granularity::Day),
        Unit::Week => days(monday(day)?, 7, Granularity::Week),
        Unit::Weekend => days(
            monday(day)?.checked_add_days(Days::new(5))?,
            2,
            Granularity::Weekend,
        ),
        Unit::Month => months(day.with_day(1)?, 1, Granularity::Month),
        Unit::Year => months(day.with_day(1)?.with_month(1)?, 12, Granularity::Year),
    }
}

/// So many units that end with today, or that begin with it.
fn stretch(unit: Unit, count: i32, today: NaiveDate) -> Option<Interval> {
    let far = moved(unit, count, today)?;
    let granularity = match unit {
        Unit::Hour | Unit::Day => Granularity::Day,
        Unit::Week | Unit::Weekend => Granularity::Week,
        Unit::Month => Granularity::Month,
        Unit::Year => Granularity::Year,
    };
    let (start, last) = (far.min(today), far.max(today));
    Some(Interval {
        start,
        end: last.succ_opt()?,
        granularity,
        recurring: false,
    })
}

fn moved(unit: Unit, offset: i32, today: NaiveDate) -> Option<NaiveDate> {
    let by_days = |days: i64| today.checked_add_signed(TimeDelta::try_days(days)?);
    let by_months = |count: i32| {
        let months = Months::new(count.unsigned_abs());
        if count < 0 {
            today.checked_sub_months(months)
        } else {
            today.checked_add_months(months)
        }
    };
    match unit {
        Unit::Hour => by_days(i64::from(offset) / 24),
        Unit::Day => by_days(i64::from(offset)),
        Unit::Week | Unit::Weekend => by_days(i64::from(offset) * 7),
        Unit::Month => by_months(offset),
        Unit::Year => by_months(offset.checked_mul(12)?),
    }
}
