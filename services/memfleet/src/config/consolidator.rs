//! How narratives are consolidated.

use memfleet_consolidator::{Mode, Options};
use memfleet_runtime::config::{Problem, Validate};
use serde::{Deserialize, Serialize};

/// The consolidator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Consolidator {
    /// When narratives get their subplots: `momentum` when they go inactive, `rapid` with each fragment, `none` never. Default `momentum`.
    pub mode: Mode,
    /// Turns of a space without a word on a narrative after which it is inactive. Default 40.
    pub span: u32,
    /// Its last fragments that are put together. Default 10.
    pub fragments: u32,
}

impl Default for Consolidator {
    fn default() -> Self {
        let Options {
            mode,
            span,
            fragments,
        } = Options::default();
        Self {
            mode,
            span,
            fragments: fragments as u32,
        }
    }
}

impl Consolidator {
    /// The service's own.
    pub fn options(&self) -> Options {
        Options {
            mode: self.mode,
            span: self.span,
            fragments: self.fragments as usize,
        }
    }
}

impl Validate for Consolidator {
    fn problems(&self) -> Vec<Problem> {
        let rules = [
            ("span", self.span == 0, "must be at least 1"),
            (
                "fragments",
                !(1..=100).contains(&self.fragments),
                "must be 1 to 100",
            ),
        ];
        let broken = rules.into_iter().filter(|rule| rule.1);
        broken
            .map(|(key, _, message)| Problem::new(key, message))
            .collect()
    }
}
