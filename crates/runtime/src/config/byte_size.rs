//! Sizes in bytes, written as people write them: `"64MiB"`, `"500KB"`, `"0B"`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const UNITS: [(u64, &str); 4] = [
    (1 << 40, "TiB"),
    (1 << 30, "GiB"),
    (1 << 20, "MiB"),
    (1 << 10, "KiB"),
];

/// A number of bytes. Shown in the largest binary unit that divides it, so that reading it back loses nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

impl ByteSize {
    /// `count` bytes.
    pub const fn bytes(count: u64) -> Self {
        Self(count)
    }

    /// `count` × 1024 bytes.
    pub const fn kibibytes(count: u64) -> Self {
        Self(count << 10)
    }

    /// `count` × 1024² bytes.
    pub const fn mebibytes(count: u64) -> Self {
        Self(count << 20)
    }

    /// The number of bytes.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The number of bytes as an in-memory size; what does not fit becomes the largest size.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS
            .iter()
            .find(|(size, _)| self.0 >= *size && self.0.is_multiple_of(*size))
        {
            Some((size, unit)) => write!(formatter, "{}{unit}", self.0 / size),
            None => write!(formatter, "{}B", self.0),
        }
    }
}

/// The text is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a size with its unit, such as \"64MiB\" or \"500KB\"")]
pub struct ParseError(String);

impl FromStr for ByteSize {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refused = || ParseError(text.to_owned());
        if text.trim().parse::<f64>().is_ok() {
            return Err(refused());
        }
        text.parse::<bytesize::ByteSize>()
            .map(|size| Self(size.as_u64()))
            .map_err(|_| refused())
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        super::duration::from_text(deserializer, "a size with its unit, such as \"64MiB\"")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_are_read_in_binary_and_decimal_units() {
        assert_eq!("64MiB".parse(), Ok(ByteSize::mebibytes(64)));
        assert_eq!("1.5 KiB".parse(), Ok(ByteSize::bytes(1536)));
        assert_eq!("2MB".parse(), Ok(ByteSize::bytes(2_000_000)));
    }

    #[test]
    fn a_number_without_a_unit_is_refused() {
        assert!("64".parse::<ByteSize>().is_err());
        assert!(
            serde_json::from_str::<ByteSize>("64")
                .unwrap_err()
                .to_string()
                .contains("with its unit")
        );
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back_exactly(count in 0u64..1 << 50, unit in 0usize..4) {
            for size in [ByteSize::bytes(count), ByteSize::bytes((count >> 40) * UNITS[unit].0)] {
                prop_assert_eq!(size.to_string().parse(), Ok(size));
            }
        }
    }
}
