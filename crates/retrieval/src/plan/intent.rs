//! What kind of memory a query asks for, as the search hears it (AMA section 3.2): requests for a summary, and for an order of events. Details
//! and single facts need no route of their own: the signals of turns and facts carry them (docs/benchmarks.md).

use memfleet_domain::intent::Intent;
use memfleet_language::{Language, is_request};

use super::summary;

/// As the wording tells.
pub fn heard(text: &str, language: Language) -> Intent {
    let abstracted = summary::is_asked_for(text);
    Intent {
        abstracted,
        event: !abstracted && is_request(text, language),
        ..Intent::default()
    }
}
