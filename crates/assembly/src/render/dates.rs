//! Dates as a block shows them: days in its time zone. The only bytes that depend on the present are those of `as of`.

use crate::candidate::Candidate;
use crate::options::Options;
use chrono::{DateTime, Datelike, NaiveDate, Utc};
use std::ops::RangeInclusive;

/// A time outside of these years was never meant, and is shown as none.
const YEARS: RangeInclusive<i32> = 1000..=9999;

/// The day of an instant in the zone of the block.
pub(super) fn local(time: DateTime<Utc>, options: &Options<'_>) -> Option<NaiveDate> {
    // `naive_local` would overflow at the ends of the calendar.
    let offset = chrono::Offset::fix(&chrono::TimeZone::offset_from_utc_datetime(
        &options.time_zone,
        &time.naive_utc(),
    ));
    let day = time.naive_utc().checked_add_offset(offset)?.date();
    YEARS.contains(&day.year()).then_some(day)
}

/// The day that stands over an item.
pub(super) fn heading(candidate: &Candidate<'_>, options: &Options<'_>) -> Option<NaiveDate> {
    of_line(candidate.event_time, options)
}

/// The day that something was said, where the template shows days.
pub(super) fn of_line(
    event_time: Option<DateTime<Utc>>,
    options: &Options<'_>,
) -> Option<NaiveDate> {
    if options.template.shows_dates {
        local(event_time?, options)
    } else {
        None
    }
}

/// The present, where it is given and shown.
pub(super) fn as_of(options: &Options<'_>) -> Option<NaiveDate> {
    if options.template.shows_as_of {
        local(options.as_of?, options)
    } else {
        None
    }
}
