//! Two time axes: when something happened (event time τ, given by the caller) and when memfleet knew it (recorded time,
//! given by a [`Clock`]). Both are UTC with microsecond precision, so that a store gives back what it was given.

use chrono::{DateTime, SubsecRound, Utc};
use serde::{Deserialize, Serialize};

/// A point in time, UTC, microseconds.
pub type Timestamp = DateTime<Utc>;

/// Where the present comes from. An argument wherever it matters, so that tests can hold it still.
pub trait Clock: Send + Sync {
    /// The present, cut to microseconds.
    fn now(&self) -> Timestamp;
}

/// The clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Utc::now().trunc_subsecs(6)
    }
}

/// A clock that stands where it is put.
#[derive(Debug, Clone, Copy)]
pub struct FixedClock(pub Timestamp);

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        self.0
    }
}

/// A past state of memory on both axes; an absent bound is the present.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AsOf {
    /// Only what was known at this instant: recorded by then and not replaced by then.
    pub known_at: Option<Timestamp>,
    /// Only what had happened by this instant (turns without an event time count by their recorded time).
    pub happened_by: Option<Timestamp>,
}

/// A half-open range of time; an absent bound is open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeRange {
    /// First instant inside.
    pub start: Option<Timestamp>,
    /// First instant after.
    pub end: Option<Timestamp>,
}

impl TimeRange {
    /// Whether the instant lies inside.
    pub fn contains(&self, instant: Timestamp) -> bool {
        self.start.is_none_or(|start| start <= instant) && self.end.is_none_or(|end| instant < end)
    }

    /// Whether both bounds are open.
    pub fn is_open(&self) -> bool {
        self.start.is_none() && self.end.is_none()
    }
}
