//! How near a turn lies to a date of the query. People speak of an event when it happens or soon after, seldom before.

use chrono::TimeDelta;
use memfleet_domain::time::Timestamp;
use memfleet_language::time::{Granularity, Reference};

/// Days after the date in which nearness falls to 1/e.
const AFTER: f32 = 7.0;
/// Days before the date in which nearness falls to 1/e.
const BEFORE: f32 = 2.0;

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

/// A whole year says too little about a day.
fn told(dates: &[Reference]) -> impl Iterator<Item = &Reference> {
    let is_short = |date: &&Reference| date.granularity < Granularity::Year;
    dates.iter().filter(is_short)
}

fn decay(date: &Reference, time: Timestamp) -> f32 {
    if time < date.start {
        (-days(date.start - time) / BEFORE).exp()
    } else if time >= date.end {
        (-days(time - date.end) / AFTER).exp()
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

    #[test]
    fn nearness_falls_slowly_after_and_quickly_before() {
        let date = Reference {
            start: at(8, 0),
            end: at(9, 0),
            granularity: Granularity::Day,
            recurring: false,
            span: 0..1,
        };
        let near = |time| nearness(std::slice::from_ref(&date), Some(time));
        assert!((near(at(8, 13)) - 1.0).abs() < f32::EPSILON);
        assert!((near(at(16, 0)) - (-1_f32).exp()).abs() < 1e-6);
        assert!((near(at(6, 0)) - (-1_f32).exp()).abs() < 1e-6);
        assert!(near(at(10, 0)) > near(at(6, 0)));
        assert!(nearness(&[], Some(at(8, 0))).abs() < f32::EPSILON);
        assert!(nearness(&[date], None).abs() < f32::EPSILON);
    }

    #[test]
    fn a_year_is_too_wide() {
        let year = Reference {
            start: at(1, 0),
            end: at(30, 0),
            granularity: Granularity::Year,
            recurring: false,
            span: 0..1,
        };
        assert!(nearness(&[year], Some(at(8, 0))).abs() < f32::EPSILON);
    }
}
