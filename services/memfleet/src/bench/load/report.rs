//! The report of `memfleet bench load`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::system::{Calls, System};
use crate::bench::latency::Latency;

/// Every system, and the first one as ratios to the second.
#[derive(Debug, Serialize)]
pub struct Report {
    systems: Vec<SystemReport>,
    /// First system by second, by kind of call.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    ratios: BTreeMap<String, Ratio>,
}

#[derive(Debug, Serialize)]
struct SystemReport {
    system: String,
    seconds: f64,
    calls: BTreeMap<String, CallsReport>,
}

#[derive(Debug, Serialize)]
struct CallsReport {
    answered: usize,
    per_second: f64,
    latency_ms: Latency,
    /// Calls that failed, by the reason they gave.
    errors: BTreeMap<String, usize>,
}

#[derive(Debug, Serialize)]
struct Ratio {
    per_second: f64,
    p50: f64,
    p95: f64,
}

impl Report {
    /// What was measured.
    pub fn of(systems: &[System]) -> Self {
        let systems: Vec<_> = systems.iter().map(SystemReport::of).collect();
        let ratios = match systems.as_slice() {
            [first, second] => first.by(second),
            _ => BTreeMap::new(),
        };
        Self { systems, ratios }
    }

    /// The figures for people.
    pub fn table(&self) -> String {
        let mut lines = Vec::new();
        for system in &self.systems {
            lines.push(format!(
                "{} ({:.0} s under load)\n{:<14}{:>9}{:>10}{:>10}{:>10}{:>10}  errors",
                system.system, system.seconds, "", "calls", "calls/s", "p50 ms", "p95 ms", "p99 ms"
            ));
            lines.extend(system.calls.iter().map(|(kind, calls)| calls.line(kind)));
        }
        if !self.ratios.is_empty() {
            let title = "first by second";
            lines.push(format!(
                "{title:<23}{:>10}{:>10}{:>10}",
                "calls/s", "p50", "p95"
            ));
        }
        lines.extend(self.ratios.iter().map(|(kind, ratio)| {
            format!(
                "{kind:<23}{:>10.2}{:>10.2}{:>10.2}",
                ratio.per_second, ratio.p50, ratio.p95
            )
        }));
        lines.join("\n")
    }
}

impl SystemReport {
    fn of(system: &System) -> Self {
        let seconds = system.loaded.as_secs_f64();
        let calls = system.calls.iter();
        let calls = calls.map(|(kind, calls)| (kind.to_string(), CallsReport::of(calls, seconds)));
        Self {
            system: system.name.clone(),
            seconds,
            calls: calls.collect(),
        }
    }

    fn by(&self, other: &Self) -> BTreeMap<String, Ratio> {
        let both = self.calls.iter().filter_map(|(kind, calls)| {
            let other = other.calls.get(kind)?;
            let ratio = Ratio {
                per_second: calls.per_second / other.per_second,
                p50: calls.latency_ms.p50 / other.latency_ms.p50,
                p95: calls.latency_ms.p95 / other.latency_ms.p95,
            };
            Some((kind.clone(), ratio))
        });
        both.collect()
    }
}

impl CallsReport {
    fn of(calls: &Calls, seconds: f64) -> Self {
        Self {
            answered: calls.durations.len(),
            per_second: calls.durations.len() as f64 / seconds,
            latency_ms: Latency::of(calls.durations.clone()),
            errors: calls.errors.clone(),
        }
    }

    fn line(&self, kind: &str) -> String {
        let latency = self.latency_ms;
        let errors = self.errors.iter();
        let errors = errors.map(|(reason, count)| format!("{count} {reason}"));
        let errors = errors.collect::<Vec<_>>().join(", ");
        format!(
            "{kind:<14}{:>9}{:>10.1}{:>10.1}{:>10.1}{:>10.1}  {errors}",
            self.answered, self.per_second, latency.p50, latency.p95, latency.p99
        )
    }
}
