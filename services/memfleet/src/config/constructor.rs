//! Settings of the constructor.

use serde::{Deserialize, Serialize};

/// The constructor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Constructor {
    /// Extractor of facts that works without a language model. Default: statements where the model
    /// is configured that the reader of turns builds on, else rules ([`Config::facts`]).
    ///
    /// [`Config::facts`]: super::Config::facts
    pub facts: Option<FactSource>,
}

/// Extractor of facts that works without a language model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactSource {
    /// Sentences with a clause, by a grammar of English.
    Rules,
    /// Statements of any language in their own words, by the reader of turns.
    Statements,
}
