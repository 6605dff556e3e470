//! Durations written as people write them: `"250ms"`, `"30s"`, `"1h 30m"`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{Error as _, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A span of time that configuration files hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HumanDuration(Duration);

impl HumanDuration {
    /// `count` seconds.
    pub const fn seconds(count: u64) -> Self {
        Self(Duration::from_secs(count))
    }

    /// `count` milliseconds.
    pub const fn milliseconds(count: u64) -> Self {
        Self(Duration::from_millis(count))
    }

    /// The span as the standard library's type.
    pub const fn get(self) -> Duration {
        self.0
    }
}

impl From<Duration> for HumanDuration {
    fn from(duration: Duration) -> Self {
        Self(duration)
    }
}

impl fmt::Display for HumanDuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(formatter)
    }
}

/// The text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a duration with its unit, such as \"250ms\", \"30s\" or \"1h 30m\"")]
pub struct ParseError(String);

impl FromStr for HumanDuration {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        humantime::parse_duration(text)
            .map(Self)
            .map_err(|_| ParseError(text.to_owned()))
    }
}

impl Serialize for HumanDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HumanDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(
            deserializer,
            "a duration with its unit, such as \"250ms\" or \"30s\"",
        )
    }
}

/// Reads a type that is written as text; `expecting` is what the error asks for when it is a bare number instead.
pub(super) fn from_text<'de, D, T>(deserializer: D, expecting: &'static str) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    struct Text(&'static str);
    impl Visitor<'_> for Text {
        type Value = String;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str(self.0)
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<String, E> {
            if text.is_empty() {
                return Err(E::invalid_value(Unexpected::Str(text), &self));
            }
            Ok(text.to_owned())
        }
    }
    deserializer
        .deserialize_str(Text(expecting))?
        .parse()
        .map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_number_without_a_unit_is_refused_with_an_example() {
        assert!("30".parse::<HumanDuration>().is_err());
        assert!(
            serde_json::from_str::<HumanDuration>("30")
                .unwrap_err()
                .to_string()
                .contains("\"30s\"")
        );
    }

    #[test]
    fn compound_durations_are_read() {
        assert_eq!("1h 30m".parse(), Ok(HumanDuration::seconds(5400)));
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back_exactly(milliseconds in 0u64..1 << 40) {
            let duration = HumanDuration::milliseconds(milliseconds);
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        }
    }
}
