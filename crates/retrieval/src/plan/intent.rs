//! What kind of memory a query asks for: AMA's intent vector B (section 3.2).

use memfleet_language::{Language, is_request};

use super::summary;

/// Which of the four dimensions a query has. A query may have several, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the four dimensions of B, each on its own"
)]
pub struct Intent {
    /// `b_fine`: details, in the words that were used.
    pub fine: bool,
    /// `b_abs`: a summary.
    pub summary: bool,
    /// `b_event`: how things went on over time, in their order.
    pub event: bool,
    /// `b_atomic`: single facts.
    pub atomic: bool,
}

impl Intent {
    /// As the wording tells.
    pub fn of(text: &str, language: Language) -> Self {
        let summary = summary::is_asked_for(text);
        Self {
            summary,
            event: !summary && is_request(text, language),
            ..Self::default()
        }
    }
}
