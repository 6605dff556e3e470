//! An answer in the making: what gates said, how long stages took, and how it ends.

use std::time::Duration;

use memfleet_domain::assembly::Reason;
use memfleet_ports::assembly::{Assembled, GateEntry};
use tokio::time::Instant;

/// An assembly that is not done.
pub struct Draft {
    pub answer: Assembled,
    stage_began: Instant,
}

impl Draft {
    /// Nothing was done yet.
    pub fn new() -> Self {
        Self {
            answer: Assembled::skipped(Reason::NothingFound),
            stage_began: Instant::now(),
        }
    }

    /// A stage, or another part of it, ends here; how long that took.
    pub fn timed(&mut self, stage: &str) -> Duration {
        let now = Instant::now();
        let took = now - self.stage_began;
        self.stage_began = now;
        let timings = &mut self.answer.timings;
        match timings.iter_mut().find(|(name, _)| name == stage) {
            Some((_, total)) => *total += took,
            None => timings.push((stage.to_owned(), took)),
        }
        took
    }

    /// Names the version of something that it is made by, where there is one.
    pub fn made_by(&mut self, what: &str, version: &str) {
        if !version.is_empty() {
            let version = (what.to_owned(), version.to_owned());
            self.answer.versions.extend([version]);
        }
    }

    /// What a gate said.
    pub fn said(&mut self, entry: GateEntry) {
        self.answer.gates.push(entry);
    }
}
