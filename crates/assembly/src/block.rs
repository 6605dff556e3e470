//! What an assembly gives back.

use crate::excerpt;
use std::borrow::Cow;
use std::ops::Range;

/// The rendered memory. With no items, `text` is empty and the counts 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// What goes into the prompt, after the separator of the place.
    pub text: String,
    /// Tokens of `text`, counted as a whole: at most the budget.
    pub tokens: usize,
    /// Tokens by which the text before it grows, the separator included: at most the budget (AMP item 64).
    pub added_tokens: usize,
    /// What is in the block, in its order.
    pub items: Vec<Item>,
    /// The candidates that are not in it, in rank order.
    pub left_out: Vec<LeftOut>,
    /// How it came to this.
    pub trace: Trace,
}

/// A memory in the block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Index into the candidates.
    pub candidate: usize,
    /// Its number in the block, from 1: `[m1]` where the template shows keys.
    pub key: u32,
    /// Its place in rank order among all candidates, from 0.
    pub rank: usize,
    /// How much of it is shown.
    pub extent: Extent,
    /// Tokens of its lines with the speaker, counted alone; headings and the enclosure are not in it.
    pub tokens: usize,
    /// Tokens of its lines if all of it were shown: `tokens` unless it is truncated.
    pub original_tokens: usize,
    /// Candidates that say the same and stand behind it: duplicates, and what was derived from it. Their provenance is its, too.
    pub merged: Vec<usize>,
}

impl Item {
    /// Whether part of it is not shown.
    pub fn truncated(&self) -> bool {
        self.extent != Extent::Whole
    }
}

/// How much of a memory is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// These bytes of its text, ascending, not adjoining; what lies between is shown as `[…]`.
    Excerpt(Vec<Range<usize>>),
}

impl Extent {
    /// What of a memory's text is shown, before it is made safe to stand in a block (`sanitise::text`).
    pub fn of<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self {
            Self::Whole => Cow::Borrowed(text),
            Self::Excerpt(ranges) => Cow::Owned(excerpt::text(text, ranges)),
        }
    }
}

/// A candidate that is not in the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Index into the candidates.
    pub candidate: usize,
    /// Why.
    pub reason: Reason,
}

/// Why a candidate was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The budget had no room for it, nor for a useful excerpt.
    Budget,
    /// It is over the tokens of one item and could not be cut.
    TooLong,
    /// It says what this candidate of a better rank says, or has its id.
    Duplicate(usize),
    /// The block has its maximum of items.
    MaxItems,
    /// The block has its maximum of items of that session.
    PerSessionCap,
    /// The block has its maximum of items of that source.
    PerSourceCap,
    /// It has no visible text.
    Blank,
    /// Its score or its relevance is not a finite number.
    InvalidScore,
    /// Its relevance is below the threshold.
    BelowThreshold,
    /// The prompt says it already.
    InPrompt,
    /// Another memory replaces it.
    Superseded,
    /// Tools and the web are not to be quoted.
    Untrusted,
    /// All that it was derived from is in the block.
    DerivedFromIncluded,
    /// It belongs to the running session. Told by the caller.
    CurrentSession,
    /// All that it was derived from belongs to the running session. Told by the caller.
    DerivedFromCurrent,
    /// It is newer than what may enter. Told by the caller.
    RecencyFilter,
    /// A rule of the caller keeps it out.
    Policy,
}

impl Reason {
    /// Its stable name.
    pub fn code(self) -> &'static str {
        match self {
            Self::Budget => "BUDGET",
            Self::TooLong => "TOO_LONG",
            Self::Duplicate(_) => "DUPLICATE",
            Self::MaxItems => "MAX_ITEMS",
            Self::PerSessionCap => "PER_SESSION_CAP",
            Self::PerSourceCap => "PER_SOURCE_CAP",
            Self::Blank => "BLANK",
            Self::InvalidScore => "INVALID_SCORE",
            Self::BelowThreshold => "BELOW_THRESHOLD",
            Self::InPrompt => "IN_PROMPT",
            Self::Superseded => "SUPERSEDED",
            Self::Untrusted => "UNTRUSTED",
            Self::DerivedFromIncluded => "DERIVED_FROM_INCLUDED",
            Self::CurrentSession => "CURRENT_SESSION",
            Self::DerivedFromCurrent => "DERIVED_FROM_CURRENT",
            Self::RecencyFilter => "RECENCY_FILTER",
            Self::Policy => "POLICY",
        }
    }
}

/// How a block came to be what it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Trace {
    /// Why there is no block, where there is none.
    pub empty: Option<Empty>,
    /// Candidates without a relevance, to which the threshold did not apply.
    pub unscored: usize,
    /// Candidates whose score or relevance is not a finite number.
    pub invalid_scores: usize,
    /// The best relevance of all candidates, below the threshold or not.
    pub best_relevance: Option<f32>,
}

/// Why a block is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Empty {
    /// The budget is 0.
    BudgetZero,
    /// There was nothing to choose from.
    NoCandidates,
    /// No candidate is as relevant as it has to be.
    BelowThreshold,
    /// Nothing that may enter fits.
    BudgetTooSmall,
    /// Every candidate was left out, for reasons of its own.
    AllLeftOut,
}

impl Empty {
    /// Its stable name.
    pub fn code(self) -> &'static str {
        match self {
            Self::BudgetZero => "BUDGET_ZERO",
            Self::NoCandidates => "NO_CANDIDATES",
            Self::BelowThreshold => "BELOW_THRESHOLD",
            Self::BudgetTooSmall => "BUDGET_TOO_SMALL",
            Self::AllLeftOut => "ALL_LEFT_OUT",
        }
    }

    /// Why nothing was shown of these, which were all left out.
    pub(crate) fn of(left_out: &[LeftOut]) -> Self {
        let any = |reasons: &[Reason]| left_out.iter().any(|left| reasons.contains(&left.reason));
        if left_out.is_empty() {
            Self::NoCandidates
        } else if any(&[Reason::Budget, Reason::TooLong]) {
            Self::BudgetTooSmall
        } else if any(&[Reason::BelowThreshold]) {
            Self::BelowThreshold
        } else {
            Self::AllLeftOut
        }
    }
}
