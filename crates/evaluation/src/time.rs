//! Times as data sets write them.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};

/// Formats with a time of day.
const MOMENTS: &[&str] = &[
    "%I:%M %p on %d %B, %Y",
    "%I:%M %p on %d %B %Y",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M:%S%.f",
];
/// Formats of days; they count as midnight.
const DAYS: &[&str] = &[
    "%B-%d-%Y",
    "%B %d, %Y",
    "%B %d %Y",
    "%d %B %Y",
    "%d %B, %Y",
    "%Y-%m-%d",
    "%Y/%m/%d",
];

/// The instant a data set means; zones are UTC unless the text has one. Absent for text of another form.
pub(crate) fn parse(text: &str) -> Option<DateTime<Utc>> {
    let text = text.trim();
    if let Ok(moment) = DateTime::parse_from_rfc3339(text) {
        return Some(moment.to_utc());
    }
    let moment = MOMENTS
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
    let day = || {
        DAYS.iter()
            .find_map(|format| NaiveDate::parse_from_str(text, format).ok())
    };
    moment
        .or_else(|| Some(day()?.and_time(NaiveTime::MIN)))
        .map(|moment| moment.and_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_data_sets_write_them() {
        let cases = [
            ("1:56 pm on 8 May, 2023", "2023-05-08T13:56:00Z"),
            ("12:09 am on 13 September, 2023", "2023-09-13T00:09:00Z"),
            ("March-15-2024", "2024-03-15T00:00:00Z"),
            ("2024-03-15", "2024-03-15T00:00:00Z"),
            ("2024-03-15 08:30", "2024-03-15T08:30:00Z"),
            ("2024-03-15T08:30:00+02:00", "2024-03-15T06:30:00Z"),
        ];
        for (text, expected) in cases {
            assert_eq!(
                parse(text).map(|time| time.to_rfc3339()),
                Some(expected.replace('Z', "+00:00")),
                "{text}"
            );
        }
        assert_eq!(parse("last spring"), None);
    }
}
