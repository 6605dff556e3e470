//! What an endpoint understands of the protocol. We begin with all of it, and take back what it refuses; what then works is
//! remembered for its model.

use std::collections::HashMap;
use std::sync::Mutex;

use memfleet_ports::language_model::Call;

use crate::failure::Failure;

/// How the form of a reply is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// By a schema that the endpoint keeps to.
    Schema,
    /// As any JSON object; the schema is in the words.
    Object,
    /// In words only.
    Text,
}

/// What an endpoint understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    /// How the form of a reply is asked for.
    pub format: Format,
    /// Whether the limit of tokens has its newer name.
    pub has_newer_limit: bool,
    /// Whether there is a temperature.
    pub has_temperature: bool,
    /// Whether streams tell what they cost.
    pub counts_streams: bool,
}

impl Dialect {
    const FULL: Self = Self {
        format: Format::Schema,
        has_newer_limit: false,
        has_temperature: true,
        counts_streams: true,
    };

    /// What to try after a failure; nothing where that would not help.
    pub fn simpler(self, failure: &Failure, call: &Call, stream: bool) -> Option<Self> {
        let Failure::Status { code, hint, .. } = failure else {
            return None;
        };
        if !matches!(code, 400 | 415 | 422 | 501) || hint.too_long {
            return None;
        }
        let mut next = self;
        if hint.newer_limit && !self.has_newer_limit {
            next.has_newer_limit = true;
        } else if hint.temperature && self.has_temperature {
            next.has_temperature = false;
        } else if hint.stream_options && stream && self.counts_streams {
            next.counts_streams = false;
        } else {
            call.schema.as_ref()?;
            next.format = match self.format {
                Format::Schema => Format::Object,
                Format::Object => Format::Text,
                Format::Text => return None,
            };
        }
        Some(next)
    }
}

/// The dialects of models.
#[derive(Debug, Default)]
pub struct Dialects(Mutex<HashMap<String, Dialect>>);

impl Dialects {
    /// What this model is known to understand.
    pub fn of(&self, model: &str) -> Dialect {
        let known = self.0.lock().expect("nothing panics with it");
        known.get(model).copied().unwrap_or(Dialect::FULL)
    }

    /// It understood this.
    pub fn learn(&self, model: &str, dialect: Dialect) {
        if self.of(model) != dialect {
            tracing::info!(
                model,
                ?dialect,
                "the endpoint does not take all of the protocol"
            );
            let mut known = self.0.lock().expect("nothing panics with it");
            known.insert(model.to_owned(), dialect);
        }
    }
}
