//! Percentiles of durations.

use std::time::Duration;

use serde::Serialize;

/// Durations in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Half of the calls took at most this.
    pub p50: f64,
    /// 95 of 100 calls took at most this.
    pub p95: f64,
    /// 99 of 100 calls took at most this.
    pub p99: f64,
}

impl Latency {
    /// The percentiles of some durations (nearest rank).
    pub fn of(mut durations: Vec<Duration>) -> Self {
        durations.sort_unstable();
        let at = |percent: f64| {
            let rank = (percent / 100.0 * durations.len() as f64).ceil() as usize;
            durations
                .get(rank.saturating_sub(1))
                .map_or(0.0, |duration| duration.as_secs_f64() * 1000.0)
        };
        Self {
            p50: at(50.0),
            p95: at(95.0),
            p99: at(99.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_durations_that_occurred() {
        let latency = Latency::of((1..=100).rev().map(Duration::from_millis).collect());
        assert_eq!(
            latency,
            Latency {
                p50: 50.0,
                p95: 95.0,
                p99: 99.0
            }
        );
        assert_eq!(Latency::of(Vec::new()), Latency::default());
    }
}
