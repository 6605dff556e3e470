//! The report of `memfleet bench neighbours`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::ways::Way;
use super::{Bounds, Run};
use crate::bench::latency::Latency;

/// Figures by way, and whether all of them are within bounds.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Whether every call kept to the bounds, and none failed.
    pub is_within: bool,
    ways: Vec<WayReport>,
    #[serde(skip)]
    bounds: Bounds,
}

/// A run without the neighbour, and the next one with it.
pub(super) struct Pair {
    pub without: Run,
    pub with: Run,
}

#[derive(Debug, Serialize)]
struct WayReport {
    way: String,
    calls: BTreeMap<&'static str, CallReport>,
    /// Calls that failed beside the neighbour, by kind and reason.
    errors: BTreeMap<String, usize>,
}

/// Medians over all pairs, in milliseconds.
#[derive(Debug, Serialize)]
struct CallReport {
    answered: usize,
    p50_without: f64,
    p50_with: f64,
    p99_without: f64,
    p99_with: f64,
    is_within: bool,
}

impl Report {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            is_within: true,
            ways: Vec::new(),
            bounds,
        }
    }

    pub(super) fn add(&mut self, way: Way, pairs: &[Pair]) {
        let mut errors = BTreeMap::new();
        for error in pairs.iter().flat_map(|pair| &pair.with.errors) {
            *errors.entry(error.clone()).or_default() += 1;
        }
        let calls = BTreeMap::from([
            ("remember", self.call(pairs, |run| &run.remember)),
            ("recall", self.call(pairs, |run| &run.recall)),
        ]);
        self.is_within &= errors.is_empty() && calls.values().all(|call| call.is_within);
        self.ways.push(WayReport {
            way: way.to_string(),
            calls,
            errors,
        });
    }

    fn call(&self, pairs: &[Pair], of: fn(&Run) -> &Vec<std::time::Duration>) -> CallReport {
        let latency = |run: &Run| Latency::of(of(run).clone());
        let both: Vec<_> = pairs
            .iter()
            .map(|pair| (latency(&pair.without), latency(&pair.with)))
            .collect();
        let [p50_without, p50_with, p99_without, p99_with] = [
            |(without, _): &(Latency, Latency)| without.p50,
            |(_, with): &(Latency, Latency)| with.p50,
            |(without, _): &(Latency, Latency)| without.p99,
            |(_, with): &(Latency, Latency)| with.p99,
        ]
        .map(|figure| median(both.iter().map(figure).collect()));
        let answered = pairs.iter().map(|pair| of(&pair.with).len()).sum();
        let Bounds { p50, p99, floor_ms } = self.bounds;
        CallReport {
            answered,
            is_within: answered > 0
                && p50_with <= p50 * p50_without
                && p99_with <= (p99 * p99_without).max(floor_ms),
            p50_without,
            p50_with,
            p99_without,
            p99_with,
        }
    }

    /// The figures for people.
    pub fn table(&self) -> String {
        let mut lines = vec![format!(
            "{:<14}{:<10}{:>8}{:>12}{:>12}{:>12}{:>12}",
            "milliseconds", "", "calls", "p50", "p50 beside", "p99", "p99 beside"
        )];
        for of in &self.ways {
            for (kind, call) in &of.calls {
                let verdict = if call.is_within {
                    ""
                } else {
                    "  beyond bounds"
                };
                lines.push(format!(
                    "{:<14}{kind:<10}{:>8}{:>12.1}{:>12.1}{:>12.1}{:>12.1}{verdict}",
                    of.way,
                    call.answered,
                    call.p50_without,
                    call.p50_with,
                    call.p99_without,
                    call.p99_with
                ));
            }
            lines.extend(
                of.errors
                    .iter()
                    .map(|(error, count)| format!("{:<14}{count} failed: {error}", of.way)),
            );
        }
        lines.push(match self.is_within {
            true => "within bounds".to_owned(),
            false => "beyond bounds".to_owned(),
        });
        lines.join("\n")
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn run(milliseconds: u64) -> Run {
        Run {
            remember: vec![Duration::from_millis(milliseconds); 100],
            recall: vec![Duration::from_millis(10); 100],
            errors: Vec::new(),
        }
    }

    fn report(pairs: &[(u64, u64)]) -> Report {
        let mut report = Report::new(Bounds {
            p50: 1.5,
            p99: 2.0,
            floor_ms: 30.0,
        });
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(without, with)| Pair {
                without: run(*without),
                with: run(*with),
            })
            .collect();
        report.add(Way::Import, &pairs);
        report
    }

    #[test]
    fn the_median_pair_decides() {
        assert!(report(&[(10, 15), (10, 90), (10, 14)]).is_within);
        assert!(!report(&[(10, 16), (10, 90), (10, 14)]).is_within);
    }

    #[test]
    fn a_call_that_fails_beside_the_neighbour_is_beyond_bounds() {
        let mut report = report(&[(10, 10)]);
        let mut with = run(10);
        with.errors.push("Recall: OVERLOADED".to_owned());
        let without = run(10);
        report.add(Way::Bodies, &[Pair { without, with }]);
        assert!(!report.is_within);
        assert!(report.table().contains("1 failed: Recall: OVERLOADED"));
    }
}
