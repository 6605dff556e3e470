//! Structured logs on standard error, a Prometheus endpoint, and traces to a collector where one is named.

mod endpoint;
mod lines;
pub mod names;
mod traces;

use std::io::{self, IsTerminal};

use serde::{Deserialize, Serialize};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, layer::SubscriberExt};

pub use endpoint::{MetricsAddress, MetricsEndpoint, Readiness, install_recorder};
pub use traces::Traces;

use crate::config::{Problem, Validate};

/// Logs and metrics of a process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// What is logged: a level (`error`, `warn`, `info`, `debug`, `trace`), or directives such as
    /// `info,memfleet_retriever=debug`. The variable `RUST_LOG` wins when it is set. Default `info`.
    pub level: String,
    /// How log lines look. Default `human`.
    pub format: Format,
    /// Where `GET /metrics` answers in the Prometheus text format, and `/livez` and `/readyz` for an orchestrator: an address, or
    /// `off`. Default `127.0.0.1:9464`.
    pub metrics_address: MetricsAddress,
    /// Where traces are sent, as OTLP over gRPC: `http://host:4317`. Default none: nothing is sent.
    pub otlp_url: Option<String>,
    /// The share of traces that begin here and are recorded, 0 to 1; those that a caller began are recorded as it says. Default 1.
    pub trace_ratio: f64,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// For people; in colour on a terminal unless `NO_COLOR` is set.
    Human,
    /// One JSON object a line, for log collectors.
    Json,
}

/// Telemetry cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `level` is not a filter.
    #[error("the log filter `{0}` is not valid: {1}")]
    Filter(String, tracing_subscriber::filter::ParseError),
    /// The endpoint's address cannot be bound.
    #[error(
        "metrics cannot be served on {0}: {1}; set telemetry.metrics_address to a free address or to \"off\""
    )]
    Bind(std::net::SocketAddr, io::Error),
    /// The exporter of traces cannot be made.
    #[error("traces cannot be sent to {0}: {1}; check telemetry.otlp_url")]
    Exporter(String, String),
    /// The process already records metrics some other way.
    #[error("another metrics recorder is installed")]
    Recorder,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            level: "info".to_owned(),
            format: Format::Human,
            metrics_address: MetricsAddress::default(),
            otlp_url: None,
            trace_ratio: 1.0,
        }
    }
}

impl Validate for Options {
    fn problems(&self) -> Vec<Problem> {
        let filter = problem_of_level(&self.level).map(|it| Problem::new("level", it));
        let is_url = |url: &String| url.starts_with("http://");
        let collector = self.otlp_url.as_ref().filter(|url| !is_url(url));
        let collector =
            collector.map(|_| Problem::new("otlp_url", "must have the form http://host:4317"));
        let ratio = (!(0.0..=1.0).contains(&self.trace_ratio))
            .then(|| Problem::new("trace_ratio", "must lie between 0 and 1"));
        [filter, collector, ratio].into_iter().flatten().collect()
    }
}

/// Words of a filter that stand alone are levels, or parts of this program. The parser takes any
/// other for the name of a part, and then nothing is logged.
fn problem_of_level(directives: &str) -> Option<String> {
    if let Err(error) = EnvFilter::try_new(directives) {
        return Some(format!("not a log filter: {error}"));
    }
    let mut words = directives.split(',').map(str::trim);
    let is_level = |word: &str| word.parse::<LevelFilter>().is_ok();
    let is_part = |word: &str| word.starts_with("memfleet") || word.contains(['=', '[']);
    let wrong = words.find(|word| !word.is_empty() && !is_level(word) && !is_part(word))?;
    Some(format!(
        "`{wrong}` is no level: use `off`, `error`, `warn`, `info`, `debug` or `trace`, or name a part with its level, as in `{wrong}=debug`"
    ))
}

/// Starts logging to standard error, and tracing as `service`; must run inside tokio. In a process that logs already (tests)
/// nothing changes. What it returns is flushed at the end.
pub fn init(options: &Options, service: &str) -> Result<Traces, Error> {
    let directives = std::env::var(EnvFilter::DEFAULT_ENV)
        .ok()
        .filter(|directives| !directives.is_empty());
    let directives = directives.unwrap_or_else(|| options.level.clone());
    let filter =
        EnvFilter::try_new(&directives).map_err(|error| Error::Filter(directives, error))?;
    let colours = io::stderr().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let traces = Traces::start(options, service)?;
    let subscriber = tracing_subscriber::registry()
        .with(filter)
        .with(memfleet_trace::RequestIds)
        .with(lines::lines(options.format, colours, io::stderr))
        .with(traces.layer());
    // Refused only when a subscriber is there already, which then stays.
    let _ = subscriber.try_init();
    Ok(traces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_cannot_be_parsed_is_a_problem() {
        let options = Options {
            level: "info,=,=".to_owned(),
            ..Options::default()
        };
        assert_eq!(options.problems()[0].key, "level");
        assert!(Options::default().problems().is_empty());
    }

    #[test]
    fn a_misspelt_level_is_a_problem() {
        for level in [
            "info",
            "OFF",
            "warn,memfleet_rpc",
            "memfleet=debug,h2=warn",
            "",
            "info,[call]=trace",
        ] {
            assert_eq!(problem_of_level(level), None, "{level}");
        }
        for level in ["inof", "info,hyper", "verbose"] {
            assert!(problem_of_level(level).is_some(), "{level}");
        }
    }
}
