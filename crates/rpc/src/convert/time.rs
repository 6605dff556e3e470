//! Points in time: UTC, years 1 to 9999, microseconds.

use memfleet_domain::Timestamp;

use super::{Checked, Fields};

/// Seconds of 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// A time as a message.
pub(super) fn time(time: Timestamp) -> prost_types::Timestamp {
    let microseconds = time.timestamp_micros();
    prost_types::Timestamp {
        seconds: microseconds.div_euclid(1_000_000),
        nanos: microseconds.rem_euclid(1_000_000) as i32 * 1_000,
    }
}

impl Checked for prost_types::Timestamp {
    type Value = Timestamp;

    /// Cuts to microseconds, towards the past.
    fn check(self, fields: &mut Fields) -> Option<Timestamp> {
        if !SECONDS.contains(&self.seconds) {
            return fields.refuse("", "must lie in the years 1 to 9999");
        }
        if !(0..1_000_000_000).contains(&self.nanos) {
            return fields.refuse("", "must have nanos between 0 and 999999999");
        }
        Timestamp::from_timestamp(self.seconds, self.nanos as u32 / 1_000 * 1_000)
    }
}

impl Fields {
    /// A time that may be left out.
    #[expect(
        clippy::option_option,
        reason = "the outer one says whether the field was right"
    )]
    pub(super) fn optional_time(
        &mut self,
        field: &str,
        time: Option<prost_types::Timestamp>,
    ) -> Option<Option<Timestamp>> {
        match time {
            Some(time) => self.inside(field, |fields| time.check(fields)).map(Some),
            None => Some(None),
        }
    }
}
