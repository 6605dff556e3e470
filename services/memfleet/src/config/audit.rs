//! What is written down of acts.

use std::time::Duration;

use memfleet_runtime::config::{Problem, Validate};
use serde::{Deserialize, Serialize};

/// The audit log: administrative acts, and which turns entered which prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Audit {
    /// Whether it is kept. Default true.
    pub enabled: bool,
    /// For how many days. Default 90.
    pub retention_days: u32,
}

impl Default for Audit {
    fn default() -> Self {
        Self {
            enabled: true,
            retention_days: 90,
        }
    }
}

impl Audit {
    /// How long it is kept, if it is.
    pub fn retention(&self) -> Option<Duration> {
        let days = Duration::from_hours(24) * self.retention_days;
        self.enabled.then_some(days)
    }
}

impl Validate for Audit {
    fn problems(&self) -> Vec<Problem> {
        let message = "must be at least 1; `audit.enabled = false` keeps no log";
        let is_wrong = self.retention_days == 0;
        is_wrong
            .then(|| Problem::new("retention_days", message))
            .into_iter()
            .collect()
    }
}
