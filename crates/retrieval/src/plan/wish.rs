//! What a query asks for that no intent tells, only its wording.

use memfleet_language::{Language, connects, gathers};

/// A wish of a query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Wish {
    /// None of these.
    #[default]
    Nothing,
    /// All that was said of something.
    All,
    /// How two are connected.
    Connection,
}

impl Wish {
    /// As the wording tells.
    pub(super) fn heard(text: &str, language: Language) -> Self {
        if gathers(text, language) {
            Self::All
        } else if connects(text, language) {
            Self::Connection
        } else {
            Self::Nothing
        }
    }
}
