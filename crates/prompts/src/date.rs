//! Dates as models write them: a year, a month, a day, or an instant.

use chrono::{DateTime, NaiveDate, NaiveTime, SubsecRound, Utc};
use memfleet_domain::Timestamp;

use crate::dropped::Why;

/// The first instant of it, in UTC. Absent for an absent or empty text.
pub fn start(text: Option<&str>) -> Result<Option<Timestamp>, Why> {
    let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let instant = DateTime::parse_from_rfc3339(text).map(|instant| instant.with_timezone(&Utc));
    let day = || day(text).map(|day| day.and_time(NaiveTime::MIN).and_utc());
    let found = instant.ok().or_else(day).ok_or(Why::Malformed)?;
    Ok(Some(found.trunc_subsecs(6)))
}

fn day(text: &str) -> Option<NaiveDate> {
    let completed = match text.len() {
        4 => format!("{text}-01-01"),
        7 => format!("{text}-01"),
        _ => text.to_owned(),
    };
    completed.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_its_first_instant() {
        for (text, instant) in [
            ("2024", "2024-01-01T00:00:00Z"),
            ("2024-03", "2024-03-01T00:00:00Z"),
            ("2024-03-09", "2024-03-09T00:00:00Z"),
            ("2024-03-09T10:00:00+02:00", "2024-03-09T08:00:00Z"),
        ] {
            let expected = instant.parse::<Timestamp>().unwrap();
            assert_eq!(start(Some(text)), Ok(Some(expected)), "{text}");
        }
        assert_eq!(start(None), Ok(None));
        assert_eq!(start(Some(" ")), Ok(None));
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in ["yesterday", "2024-13", "2024-02-30", "99999", "2024-3-9T"] {
            assert_eq!(start(Some(text)), Err(Why::Malformed), "{text}");
        }
    }
}
