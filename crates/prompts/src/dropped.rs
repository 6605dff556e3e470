//! What was left out of a reply, by why: a reply is used as far as it holds.

/// How many items of a reply were left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dropped {
    /// They name what was not shown.
    pub unknown: u32,
    /// Their words are not in the turns that they name.
    pub unsupported: u32,
    /// They are not what was asked for: too long, out of range, a part missing, one too many.
    pub malformed: u32,
}

impl Dropped {
    /// Each reason with its count, for metrics.
    pub fn counts(self) -> [(&'static str, u32); 3] {
        [
            ("unknown", self.unknown),
            ("unsupported", self.unsupported),
            ("malformed", self.malformed),
        ]
    }

    /// Whether nothing was left out.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    pub(crate) fn count(&mut self, why: Why) {
        match why {
            Why::Unknown => self.unknown += 1,
            Why::Unsupported => self.unsupported += 1,
            Why::Malformed => self.malformed += 1,
        }
    }
}

/// Why one item was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    Unknown,
    Unsupported,
    Malformed,
}
