//! What gates said.

use std::time::Duration;

use memfleet_domain::assembly::GateBound;
use memfleet_ports::assembly::{GateEntry, Gated};

use super::super::{Checked, Fields};
use crate::proto;

/// How long something took.
pub(super) fn duration(duration: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        nanos: duration.subsec_nanos() as i32,
    }
}

/// The same, read; what cannot be is nothing.
pub(super) fn taken(duration: Option<prost_types::Duration>) -> Duration {
    let duration = duration.and_then(|duration| Duration::try_from(duration).ok());
    duration.unwrap_or_default()
}

impl From<GateEntry> for proto::GateEntry {
    fn from(entry: GateEntry) -> Self {
        Self {
            gate: proto::GateKind::from(entry.gate).into(),
            outcome: proto::GateOutcome::from(entry.outcome).into(),
            reason: proto::AssemblyReason::from(entry.reason).into(),
            rule: entry.rule,
            pattern: entry.pattern,
            version: entry.version,
            similarity_memory: entry.similarity_memory,
            similarity_none: entry.similarity_none,
            margin: entry.margin,
            threshold: entry.threshold,
            best_score: entry.best_score,
            passed: entry.passed,
            dropped: entry.dropped,
            duration: Some(duration(entry.duration)),
            bounds: entry.bounds.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<GateBound> for proto::GateBound {
    fn from(bound: GateBound) -> Self {
        Self {
            name: bound.name,
            value: bound.value,
            bound: bound.bound,
            met: bound.met,
        }
    }
}

impl Checked for proto::GateBound {
    type Value = GateBound;

    fn check(self, _: &mut Fields) -> Option<GateBound> {
        Some(GateBound {
            name: self.name,
            value: self.value,
            bound: self.bound,
            met: self.met,
        })
    }
}

impl Checked for proto::GateEntry {
    type Value = GateEntry;

    fn check(self, fields: &mut Fields) -> Option<GateEntry> {
        let gate = fields.word("gate", self.gate);
        let outcome = fields.word("outcome", self.outcome);
        let reason = fields.word("reason", self.reason);
        let bounds = fields.messages("bounds", self.bounds, usize::MAX);
        Some(GateEntry {
            gate: gate?,
            outcome: outcome?,
            reason: reason?,
            rule: self.rule,
            pattern: self.pattern,
            version: self.version,
            similarity_memory: self.similarity_memory,
            similarity_none: self.similarity_none,
            margin: self.margin,
            threshold: self.threshold,
            best_score: self.best_score,
            passed: self.passed,
            dropped: self.dropped,
            duration: taken(self.duration),
            bounds: bounds?,
        })
    }
}

impl From<Gated> for proto::GateResponse {
    fn from(gated: Gated) -> Self {
        Self {
            pass: gated.pass,
            reason: proto::AssemblyReason::from(gated.reason).into(),
            gates: gated.gates.into_iter().map(Into::into).collect(),
        }
    }
}

impl Checked for proto::GateResponse {
    type Value = Gated;

    fn check(self, fields: &mut Fields) -> Option<Gated> {
        let reason = fields.word("reason", self.reason);
        let gates = fields.messages("gates", self.gates, usize::MAX);
        Some(Gated {
            pass: self.pass,
            reason: reason?,
            gates: gates?,
        })
    }
}
