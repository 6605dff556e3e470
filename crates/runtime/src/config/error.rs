//! Everything that is wrong with a configuration, in one report.

use std::fmt;

use super::layers::Source;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Dotted path of the key; empty when the whole file is at fault.
    pub key: String,
    /// Where the value was written.
    pub source: Source,
    /// What is wrong.
    pub message: String,
    /// How to mend it, where that is known.
    pub fix: Option<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key.as_str() {
            "" => write!(formatter, "{}: {}", self.source, self.message)?,
            key => write!(formatter, "{key} ({}): {}", self.source, self.message)?,
        }
        self.fix
            .iter()
            .try_for_each(|fix| write!(formatter, "; {fix}"))
    }
}

/// The configuration cannot be used. `Display` lists every finding on a line of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// All that is wrong, in the order of the layers; never empty.
    pub findings: Vec<Finding>,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.findings.len() {
            1 => write!(formatter, "the configuration has a problem:")?,
            count => write!(formatter, "the configuration has {count} problems:")?,
        }
        self.findings
            .iter()
            .try_for_each(|finding| write!(formatter, "\n  {finding}"))
    }
}

impl std::error::Error for Error {}
