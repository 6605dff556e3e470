//! Nearness of a turn to a date of the query. People speak of an event when it happens or soon after, seldom before.

use chrono::TimeDelta;
use memfleet_domain::time::Timestamp;
use memfleet_language::time::{Granularity, Reference};

/// Days after the date in which nearness falls to 1/e.
const AFTER: f32 = 7.0;
/// Days before the date in which nearness falls to 1/e.
const BEFORE: f32 = 2.0;
/// Share of nearness that is left right outside of a named day. Whoever names a day means that day; whoever names a week may be
/// a few days off.
const OUTSIDE_DAY: f32 = 0.3;
/// Longest interval that is one day, in hours: clock changes make days of 25 hours.
const DAY_HOURS: i64 = 26;

/// 1 inside a date of the query, falling with the days from it; 0 without a date or an event time.
pub(super) fn nearness(dates: &[Reference], time: Option<Timestamp>) -> f32 {
    let Some(time) = time else { return 0.0 };
    let dates = told(dates);
    dates.map(|date| decay(date, time)).fold(0.0, f32::max)
}

/// Whether a date of the query tells turns apart.
pub(super) fn is_asked_for(dates: &[Reference]) -> bool {
    told(dates).next().is_some()
}

/// Whether an event time lies on a single day that the query names.
pub(crate) fn is_on_named_day(dates: &[Reference], time: Option<Timestamp>) -> bool {
    let contains = |time| move |date: &Reference| date.start <= time && time < date.end;
    time.is_some_and(|time| named_days(dates).any(contains(time)))
}

/// Single days among the dates of a query.
pub(crate) fn named_days(dates: &[Reference]) -> impl Iterator<Item = &Reference> {
    dates.iter().filter(|date| is_day(date))
}

fn is_day(date: &Reference) -> bool {
    let is_short = date.end - date.start <= TimeDelta::hours(DAY_HOURS);
    date.granularity == Granularity::Day && is_short
}

/// Dates shorter than a year, which says too little about a day.
fn told(dates: &[Reference]) -> impl Iterator<Item = &Reference> {
    let is_short = |date: &&Reference| date.granularity < Granularity::Year;
    dates.iter().filter(is_short)
}

fn decay(date: &Reference, time: Timestamp) -> f32 {
    let outside = if is_day(date) { OUTSIDE_DAY } else { 1.0 };
    if time < date.start {
        outside * (-days(date.start - time) / BEFORE).exp()
    } else if time >= date.end {
        outside * (-days(time - date.end) / AFTER).exp()
    } else {
        1.0
    }
}

fn days(span: TimeDelta) -> f32 {
    span.num_seconds() as f32 / 86_400.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{TimeZone, Utc};

    fn at(day: u32, hour: u32) -> Timestamp {
        Utc.with_ymd_and_hms(2023, 5, day, hour, 0, 0).unwrap()
    }

    fn date(start: u32, end: u32, granularity: Granularity) -> [Reference; 1] {
        [Reference {
            start: at(start, 0),
            end: at(end, 0),
            granularity,
            recurring: false,
            span: 0..1,
        }]
    }

    #[test]
    fn nearness_falls_slowly_after_a_week_and_quickly_before() {
        let week = date(8, 15, Granularity::Week);
        let near = |time| nearness(&week, Some(time));
        assert!((near(at(8, 13)) - 1.0).abs() < f32::EPSILON);
        assert!((near(at(22, 0)) - (-1_f32).exp()).abs() < 1e-6);
        assert!((near(at(6, 0)) - (-1_f32).exp()).abs() < 1e-6);
        assert!(near(at(16, 0)) > near(at(6, 0)));
        assert!(nearness(&[], Some(at(8, 0))).abs() < f32::EPSILON);
        assert!(nearness(&week, None).abs() < f32::EPSILON);
    }

    #[test]
    fn nearness_falls_steeply_outside_a_named_day() {
        let day = date(8, 9, Granularity::Day);
        let near = |time| nearness(&day, Some(time));
        assert!((near(at(8, 23)) - 1.0).abs() < f32::EPSILON);
        assert!(near(at(9, 0)) <= 0.3 && near(at(7, 23)) <= 0.3);
        assert!(near(at(9, 8)) > near(at(12, 8)) && near(at(12, 8)) > 0.0);
        let days = date(8, 11, Granularity::Day);
        assert!(nearness(&days, Some(at(11, 0))) > 0.9);
    }

    #[test]
    fn only_a_single_day_is_a_named_day() {
        let on = |dates: &[Reference], time| is_on_named_day(dates, Some(time));
        let day = date(8, 9, Granularity::Day);
        assert!(on(&day, at(8, 0)) && on(&day, at(8, 23)));
        assert!(!on(&day, at(9, 0)) && !on(&day, at(7, 23)));
        assert!(!is_on_named_day(&day, None));
        assert!(!on(&date(8, 11, Granularity::Day), at(9, 0)));
        assert!(!on(&date(8, 15, Granularity::Week), at(9, 0)));
    }

    #[test]
    fn a_year_is_too_wide() {
        let year = date(1, 30, Granularity::Year);
        assert!(nearness(&year, Some(at(8, 0))).abs() < f32::EPSILON);
    }
}
