//! What an assembly gives back.

use std::ops::Range;

/// The rendered memory. With no items, `text` is empty and `tokens` 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// What goes into the prompt.
    pub text: String,
    /// Tokens of `text`, counted as a whole: at most the budget.
    pub tokens: usize,
    /// The turns in the block, in its order.
    pub items: Vec<Item>,
    /// The candidates that are not in it, in rank order.
    pub left_out: Vec<LeftOut>,
}

/// A turn in the block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Index into the candidates.
    pub candidate: usize,
    /// How much of it is shown.
    pub extent: Extent,
    /// Tokens of its lines with the speaker, counted alone; headings and the enclosure are not in it.
    pub tokens: usize,
}

/// How much of a turn is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// These bytes of its text, ascending, not adjoining; what lies between is shown as `[…]`.
    Excerpt(Vec<Range<usize>>),
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
    /// It says what this candidate of a better rank says.
    DuplicateOf(usize),
    /// The block has its maximum of items.
    MaxItems,
    /// It has no visible text.
    Blank,
    /// Its score is not a finite number.
    InvalidScore,
}
