//! The retriever by rules (AMA section 3.2, `P_ret`): a query that stands alone u′, its intent B, and how many memories it wants.

mod cues;
mod intent;
mod referents;
mod rewriting;
mod words;

use chrono_tz::Tz;
use memfleet_domain::intent::Intent;
use memfleet_domain::time::Timestamp;
use memfleet_language::Language;

pub use self::intent::{Granularity, effective_k, route};
use crate::facts::Utterance;

/// A query as it is understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// u′: what "she", "there" and "it" stand for is named where the session leaves one choice; otherwise as it was asked.
    /// Relative time stays, because search reads it.
    pub rewritten: String,
    /// B.
    pub intent: Intent,
    /// `K_dyn`: how many memories the answer takes, at least 1.
    pub k_dyn: u32,
}

/// Reads a query. `recent` are the session's last turns, oldest first; `now` and `zone` tell dates from other numbers.
/// Pronouns are resolved in English; intents are heard in the languages of `data/intents.txt`.
pub fn read(
    query: &str,
    recent: &[Utterance<'_>],
    now: Timestamp,
    zone: Tz,
    language: Language,
) -> Reading {
    let asked = words::Text::new(query, now, zone, language);
    let intent = intent::heard(&asked, language);
    Reading {
        rewritten: rewriting::rewritten(&asked, recent, zone, language),
        intent,
        k_dyn: intent::k_dyn(&asked, intent, language),
    }
}

#[cfg(test)]
mod tests;
