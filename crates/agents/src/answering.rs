//! Answers by rules alone (AMA section 3.2, full inference without a model): facts that may act (see
//! `facts::may_act`), else sentences that cover the question, quoted with speaker and date. There is no
//! answer where the evidence does not cover the question.
//!
//! `wanted` is what the evidence must cover, `values` answers with facts, `quotes` with sentences,
//! `statement_form` tells sentences that state the answer from those that share its words.

mod quotes;
mod statement_form;
mod values;
mod wanted;

use std::ops::Range;

use chrono_tz::Tz;
use memfleet_domain::derivation::Derivation;
use memfleet_domain::ids::DerivationId;
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::Turn;
use memfleet_language::Language;

use crate::asking::Asking;
pub use statement_form::PresentQuestion;
use wanted::Wanted;

/// A question.
#[derive(Debug, Clone, Copy)]
pub struct Question<'q> {
    /// Its words.
    pub text: &'q str,
    /// The language that they are read in.
    pub language: Language,
    /// Where its days begin.
    pub zone: Tz,
    /// What "last week" is relative to.
    pub asked_at: Timestamp,
    /// The instant of which it asks how things are.
    pub holds_at: Timestamp,
}

/// A turn that was found.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'e> {
    /// The turn.
    pub turn: &'e Turn,
    /// Its searchable text.
    pub text: &'e str,
    /// The facts that it states; those that hold no longer among them.
    pub facts: &'e [Derivation],
    /// The one of them that the question asks for and that holds no longer.
    pub outdated: Option<DerivationId>,
}

/// One sentence of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The sentence.
    pub text: String,
    /// What it rests on; never empty.
    pub sources: Vec<Source>,
}

/// Where a sentence is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Place of the turn in the evidence.
    pub place: usize,
    /// The bytes of its text that say so; empty where other words do.
    pub words: Range<u32>,
}

/// The answer; no sentence where the evidence does not hold it. The best turns come first in `evidence`.
pub fn answer(question: &Question<'_>, evidence: &[Evidence<'_>]) -> Vec<Statement> {
    let asking = Asking::of(question.text, question.language);
    let wanted = Wanted::of(question, &asking, evidence);
    let values = values::values(question, &asking, &wanted, evidence);
    if values.is_empty() {
        quotes::quotes(question, &asking, &wanted, evidence)
    } else {
        values
    }
}

/// The day of an instant where the question is asked.
fn day(question: &Question<'_>, instant: Timestamp) -> String {
    let local = instant.with_timezone(&question.zone);
    local.date_naive().to_string()
}

#[cfg(test)]
mod tests;
