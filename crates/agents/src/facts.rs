//! Checks of what a language model finds in turns: its facts are held against the words of their
//! turn, and get keys that compare. Statements of the reader of turns need none, since they are
//! words of their turn.
//!
//! `words` tokenises, `claims` makes the keys, `support` looks for the words of a fact in its turn,
//! `telling` for its dates and for a correction, `coverage` tells whether a fact is all that its
//! turn says.

mod claims;
mod coverage;
mod support;
mod telling;
mod words;

use memfleet_domain::derivation::{Derivation, Origin};
use memfleet_domain::ids::TurnId;
use memfleet_domain::time::Timestamp;

pub use self::claims::{claim, key};
pub use self::coverage::covers;
pub use self::support::{dates, denies, is_borne_out, is_supported, is_verb_said, sources};
pub use self::telling::{Times, as_told, takes_back};

/// Beginning of the names of the rules that extracted facts before statements did (docs/adr/0028).
const RULES_FAMILY: &str = "rules-";

/// True for facts that a prompt may state beside turns: a caller corrected them, or a language
/// model extracted them. Statements of the reader say no more than their turn, and facts that rules
/// once extracted are mostly untrue.
pub fn may_act(fact: &Derivation) -> bool {
    match &fact.origin {
        Origin::Corrected => true,
        Origin::Extracted(extractor) => {
            let is_sentence = fact.fact().is_some_and(|draft| !draft.is_statement());
            is_sentence && !extractor.starts_with(RULES_FAMILY)
        }
    }
}

/// A turn as it is read.
#[derive(Debug, Clone)]
pub struct Utterance<'t> {
    /// Its id.
    pub id: TurnId,
    /// Name of its speaker.
    pub speaker: &'t str,
    /// The turn's searchable text.
    pub text: &'t str,
    /// When it was said.
    pub said_at: Timestamp,
}

/// Verbs of states: of the past they say that it was so, where verbs of events say what came of it.
const STATES: [&str; 24] = [
    "be", "live", "work", "reside", "have", "own", "love", "like", "hate", "prefer", "use",
    "study", "attend", "drive", "date", "know", "teach", "base", "locate", "stay", "need", "rent",
    "weigh", "earn",
];

/// Whether a verb in its base form tells of a state.
pub fn is_state(verb: &str) -> bool {
    STATES.contains(&verb)
}
