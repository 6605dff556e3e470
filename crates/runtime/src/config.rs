//! Layered configuration: defaults in code, then a TOML file, then the environment, then flags. Every layer is checked
//! key by key, so one run reports everything that is wrong, where it was written, and how to mend it.

mod byte_size;
mod duration;
mod error;
mod layers;
mod load;
mod secret;
mod service_url;
mod suggest;
mod view;

pub use byte_size::ByteSize;
pub use duration::HumanDuration;
pub use error::{Error, Finding};
pub use layers::Source;
pub use load::{Loaded, Loader};
pub use secret::Secret;
pub use service_url::ServiceUrl;
pub use view::{leaves, to_toml};

/// A value that is well formed but makes no sense, found by [`Validate`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Dotted path of the key, for example `server.max_request_size`.
    pub key: String,
    /// What is wrong and how to mend it, lower case, without a full stop.
    pub message: String,
}

impl Problem {
    /// The problem `message` at `key`.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            message: message.into(),
        }
    }

    /// The same problem seen from the section that holds this one.
    #[must_use]
    pub fn under(self, section: &str) -> Self {
        Self {
            key: format!("{section}.{}", self.key),
            ..self
        }
    }
}

/// Checks that types cannot express. All problems are returned, not just the first.
pub trait Validate {
    /// Keys of earlier versions, each with the remedy that its error names.
    const REMOVED_KEYS: &[(&str, &str)] = &[];

    /// Everything that is wrong with these values; empty when they are usable.
    fn problems(&self) -> Vec<Problem>;

    /// The same, with every key prefixed by the `section` that holds this value.
    fn problems_under(&self, section: &str) -> Vec<Problem> {
        self.problems()
            .into_iter()
            .map(|problem| problem.under(section))
            .collect()
    }
}
