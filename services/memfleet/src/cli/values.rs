//! Readers of argument values: names, instants, labels, roles. Each says what is wrong and what a right value looks like.

use chrono::{DateTime, FixedOffset, NaiveDate, NaiveDateTime};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use memfleet_domain::access::SpacePattern;
use memfleet_domain::ids::{
    ExternalId, IdempotencyKey, NameError, SessionId, SettingName, SpaceId, Speaker, TenantId,
};
use memfleet_domain::time::{Clock, SystemClock};
use memfleet_domain::turn::Role;
use memfleet_domain::{Timestamp, space};
use memfleet_runtime::config::HumanDuration;

/// Date-times without a zone, which are read as UTC.
const LOCAL_FORMATS: [&str; 4] = [
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M",
];

/// The name of a space.
pub fn space(text: &str) -> Result<SpaceId, NameError> {
    SpaceId::new(text)
}

/// The name of a tenant.
pub fn tenant(text: &str) -> Result<TenantId, NameError> {
    TenantId::new(text)
}

/// The name of a space, or the beginning of names.
pub fn space_pattern(text: &str) -> Result<SpacePattern, NameError> {
    SpacePattern::new(text)
}

/// The name of a session.
pub fn session(text: &str) -> Result<SessionId, NameError> {
    SessionId::new(text)
}

/// The name of a template, or of examples.
pub fn setting(text: &str) -> Result<SettingName, NameError> {
    SettingName::new(text)
}

/// The name of a speaker.
pub fn speaker(text: &str) -> Result<Speaker, NameError> {
    Speaker::new(text)
}

/// The caller's own id of a turn.
pub fn external_id(text: &str) -> Result<ExternalId, NameError> {
    ExternalId::new(text)
}

/// The caller's name for a request.
pub fn idempotency_key(text: &str) -> Result<IdempotencyKey, NameError> {
    IdempotencyKey::new(text)
}

/// Words: a name, a topic.
pub fn words(text: &str) -> Result<String, &'static str> {
    match text.trim().is_empty() {
        true => Err("must not be empty: leave the option out to set no condition"),
        false => Ok(text.to_owned()),
    }
}

/// A label as `key=value`.
pub fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("is not `key=value`".to_owned()),
    }
}

/// One of the roles by name.
pub fn role() -> impl TypedValueParser<Value = Role> {
    PossibleValuesParser::new(["user", "assistant", "system", "tool"]).map(|name| {
        match name.as_str() {
            "assistant" => Role::Assistant,
            "system" => Role::System,
            "tool" => Role::Tool,
            _ => Role::User,
        }
    })
}

/// A whole number within bounds. On the wire 0 stands for "not given": it must not get there by mistake.
pub fn range(bounds: std::ops::RangeInclusive<u32>) -> impl TypedValueParser<Value = u32> {
    let (least, most) = bounds.into_inner();
    clap::value_parser!(u32).range(i64::from(least)..=i64::from(most))
}

/// A probability.
pub fn probability(text: &str) -> Result<f32, &'static str> {
    let parsed = text.parse().ok();
    let parsed = parsed.filter(|value| (0.0..=1.0).contains(value));
    parsed.ok_or("a number from 0 to 1 is expected, for example 0.05")
}

/// What a call may take.
pub fn timeout(text: &str) -> Result<HumanDuration, String> {
    let duration = text.parse::<HumanDuration>();
    match duration.map_err(|error| error.to_string())? {
        none if none.get().is_zero() => Err("leaves no time for anything".to_owned()),
        some => Ok(some),
    }
}

/// A time zone by its IANA name.
pub fn time_zone(text: &str) -> Result<space::TimeZone, String> {
    text.parse()
}

/// An instant: RFC 3339, a date or date-time in UTC, or how long ago (`7d`, `2h 30m`).
pub fn instant(text: &str) -> Result<Timestamp, String> {
    instant_at(text, SystemClock.now())
}

fn instant_at(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    let ago = || {
        let ago = text.trim().parse::<HumanDuration>().ok()?;
        now.checked_sub_signed(chrono::TimeDelta::from_std(ago.get()).ok()?)
    };
    date_time(text).or_else(ago).ok_or_else(|| {
        "is not an instant such as `2025-03-02`, `2025-03-02 16:20`, `2025-03-02T16:20:00+01:00` or `7d` (ago)".to_owned()
    })
}

/// A date, or a date and time: RFC 3339, also with a space for the `T` and with `+0100`, or RFC
/// 2822; UTC where no zone is named.
pub fn date_time(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let zoned = text
        .parse::<DateTime<FixedOffset>>()
        .or_else(|_| DateTime::parse_from_rfc2822(text));
    if let Ok(zoned) = zoned {
        return Some(zoned.to_utc());
    }
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    let midnight = date.map(|date| date.and_time(chrono::NaiveTime::MIN));
    let local = LOCAL_FORMATS
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
    midnight.or(local).map(|local| local.and_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read_in_every_documented_form() {
        let now = instant("2025-03-02T16:20:00Z").unwrap();
        let read = |text| instant_at(text, now).unwrap().to_rfc3339();
        assert_eq!(read("2025-03-02"), "2025-03-02T00:00:00+00:00");
        assert_eq!(read("2025-03-02 16:20"), "2025-03-02T16:20:00+00:00");
        assert_eq!(
            read("2025-03-02T16:20:07+01:00"),
            "2025-03-02T15:20:07+00:00"
        );
        assert_eq!(read("7d"), "2025-02-23T16:20:00+00:00");
        for zoned in [
            "2025-03-02 16:20:07+01:00",
            "2025-03-02T16:20:07+0100",
            "2025-03-02 15:20:07Z",
            "2025-03-02T15:20:07",
            "Sun, 02 Mar 2025 16:20:07 +0100",
        ] {
            assert_eq!(read(zoned), "2025-03-02T15:20:07+00:00", "{zoned}");
        }
        assert_eq!(
            read("2025-03-02T15:20:07.25"),
            "2025-03-02T15:20:07.250+00:00"
        );
    }

    #[test]
    fn what_is_no_instant_is_refused_with_examples() {
        assert!(instant("yesterday").unwrap_err().contains("2025-03-02"));
        assert!(instant("99999999999y").is_err());
    }

    #[test]
    fn labels_may_hold_further_equal_signs() {
        assert_eq!(
            label("url=a?b=c"),
            Ok(("url".to_owned(), "a?b=c".to_owned()))
        );
        assert!(label("=x").is_err());
    }
}
