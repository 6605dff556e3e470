//! What was left out of a reply, by why: a reply is used as far as it holds.

use memfleet_ports::language_model::Agent;

/// How many items of a reply were left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dropped {
    /// They name what was not shown.
    pub unknown: u32,
    /// Their words are not in the turns that they name; or a date or a taking back of theirs is not, and was left out alone.
    pub unsupported: u32,
    /// They are not what was asked for: too long, out of range, a part missing, one too many.
    pub malformed: u32,
}

impl Dropped {
    /// Counts them in the metrics of an agent.
    pub fn report(self, agent: Agent) {
        for (why, count) in [
            ("unknown", self.unknown),
            ("unsupported", self.unsupported),
            ("malformed", self.malformed),
        ] {
            let agent = agent.as_str();
            metrics::counter!("memfleet_model_dropped_total", "agent" => agent, "why" => why)
                .increment(count.into());
        }
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
