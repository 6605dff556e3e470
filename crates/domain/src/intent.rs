//! What kind of memory a query asks for.

use serde::{Deserialize, Serialize};

/// B = [fine, abstract, event, atomic] of AMA section 3.2. A query may have several of them, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "AMA's intent is a vector of four bits"
)]
pub struct Intent {
    /// Details: wording, quotations, figures.
    pub fine: bool,
    /// Summaries.
    #[serde(rename = "abstract")]
    pub abstracted: bool,
    /// Events across time, in their order.
    pub event: bool,
    /// Single facts.
    pub atomic: bool,
}
