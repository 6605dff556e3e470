//! Budget: how many tokens a block may add to a prompt, or why none (AMP items 65 to 72 and 81).
//!
//! Pure arithmetic on what the caller and the model's profile say. The block's own fixed cost is part of it: see `Options::overhead`.

/// The tokens of a block where the caller sets no limit of its own.
pub const MAX_TOKENS: u64 = 8_000;
/// The share of the window where the caller sets no limit of its own, in percent.
pub const PERCENT_OF_WINDOW: f64 = 10.0;
/// What is kept free for the answer where the caller does not say.
pub const RESERVED_OUTPUT: u64 = 4_000;
/// The tokens of one item where the caller does not say.
pub const PER_ITEM_TOKENS: usize = 512;
/// Fewer tokens of memory are not worth a block, nor an excerpt.
pub const MINIMUM_USEFUL_TOKENS: usize = 24;

/// What bounds a block. Unset is not 0: 0 asks for no memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The caller's limit in tokens.
    pub max_tokens: Option<i64>,
    /// The caller's limit in percent of the window, 0 to 100.
    pub percent_of_window: Option<f64>,
    /// The model's context window in tokens, if known.
    pub window: Option<u64>,
    /// What is meant in tokens where the caller gives neither limit. Default [`MAX_TOKENS`].
    pub default_max_tokens: u64,
    /// What is meant in percent of a known window where the caller gives neither. Default [`PERCENT_OF_WINDOW`].
    pub default_percent: f64,
    /// The tokens of the prompt without memory.
    pub prompt_tokens: u64,
    /// What is kept free for the answer. Default [`RESERVED_OUTPUT`].
    pub reserved_output: u64,
    /// What is left of the turn's budget, where there is one.
    pub turn_remainder: Option<u64>,
    /// What is left of the session's budget, where there is one.
    pub session_remainder: Option<u64>,
    /// What a block costs before its first item.
    pub overhead: u64,
    /// The least that is worth a block. Default [`MINIMUM_USEFUL_TOKENS`].
    pub minimum_useful: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_tokens: None,
            percent_of_window: None,
            window: None,
            default_max_tokens: MAX_TOKENS,
            default_percent: PERCENT_OF_WINDOW,
            prompt_tokens: 0,
            reserved_output: RESERVED_OUTPUT,
            turn_remainder: None,
            session_remainder: None,
            overhead: 0,
            minimum_useful: MINIMUM_USEFUL_TOKENS as u64,
        }
    }
}

/// What the limits come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// So much may be added.
    Budget(Effective),
    /// Nothing is added, and this is why.
    Nothing(NoBudget),
}

/// The budget of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effective {
    /// Tokens, at least 1.
    pub tokens: u64,
    /// The limit that is reached first.
    pub limited_by: Limit,
}

/// A limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// `max_tokens`, or [`MAX_TOKENS`].
    MaxTokens,
    /// `percent_of_window`, or [`PERCENT_OF_WINDOW`].
    PercentOfWindow,
    /// What the prompt and the answer leave of the window.
    Headroom,
    /// What is left of the turn's budget.
    Turn,
    /// What is left of the session's budget.
    Session,
}

/// Why there is no budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoBudget {
    /// The caller asked for none.
    Zero,
    /// The prompt and the answer fill the window.
    NoHeadroom,
    /// The budget of the turn is spent.
    TurnSpent,
    /// The budget of the session is spent.
    SessionSpent,
    /// Less than the block's fixed cost and the least that is useful.
    TooSmall,
}

impl NoBudget {
    /// Its stable name.
    pub fn code(self) -> &'static str {
        match self {
            Self::Zero => "BUDGET_ZERO",
            Self::NoHeadroom => "NO_HEADROOM",
            Self::TurnSpent => "TURN_BUDGET_SPENT",
            Self::SessionSpent => "SESSION_BUDGET_SPENT",
            Self::TooSmall => "BUDGET_TOO_SMALL",
        }
    }
}

/// A limit that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {reason}")]
pub struct InvalidLimit {
    /// The field of [`Limits`].
    pub field: &'static str,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl Limits {
    /// The least of what was given: `max_tokens`, the percentage of the window rounded down, the headroom, and what is left of turn and
    /// session. Where the caller gives neither of the first two, the defaults of both hold.
    pub fn effective(&self) -> Result<Verdict, InvalidLimit> {
        let asked = self.asked()?;
        if asked.contains(&Some(0)) || self.percent_of_window == Some(0.0) {
            return Ok(Verdict::Nothing(NoBudget::Zero));
        }
        let headroom = self.window.map(|window| {
            window
                .saturating_sub(self.prompt_tokens)
                .saturating_sub(self.reserved_output)
        });
        let spent = [
            (headroom, NoBudget::NoHeadroom),
            (self.turn_remainder, NoBudget::TurnSpent),
            (self.session_remainder, NoBudget::SessionSpent),
        ];
        if let Some((_, reason)) = spent.into_iter().find(|(left, _)| *left == Some(0)) {
            return Ok(Verdict::Nothing(reason));
        }
        let limits = [
            (asked[0], Limit::MaxTokens),
            (asked[1], Limit::PercentOfWindow),
            (headroom, Limit::Headroom),
            (self.turn_remainder, Limit::Turn),
            (self.session_remainder, Limit::Session),
        ];
        let given = limits
            .into_iter()
            .filter_map(|(tokens, limited_by)| Some((tokens?, limited_by)));
        let least = given.min_by_key(|(tokens, _)| *tokens);
        let (tokens, limited_by) = least.expect("one of the first two is given or has its default");
        let enough = self.overhead.saturating_add(self.minimum_useful).max(1);
        Ok(if tokens < enough {
            Verdict::Nothing(NoBudget::TooSmall)
        } else {
            Verdict::Budget(Effective { tokens, limited_by })
        })
    }

    /// The caller's two limits in tokens, or the defaults of both.
    fn asked(&self) -> Result<[Option<u64>; 2], InvalidLimit> {
        let max_tokens = self.max_tokens.map(|tokens| self.checked(tokens));
        let percent = self.percent_of_window.map(|percent| self.share(percent));
        Ok(match (max_tokens.transpose()?, percent.transpose()?) {
            (None, None) => {
                let share = self.window.map(|_| self.share(self.default_percent));
                [Some(self.default_max_tokens), share.transpose()?]
            }
            given => given.into(),
        })
    }

    fn checked(&self, tokens: i64) -> Result<u64, InvalidLimit> {
        let invalid = |reason| InvalidLimit {
            field: "max_tokens",
            reason,
        };
        let tokens = u64::try_from(tokens).map_err(|_| invalid("must not be negative"))?;
        if self.window.is_some_and(|window| tokens > window) {
            return Err(invalid("must not exceed the window"));
        }
        Ok(tokens)
    }

    fn share(&self, percent: f64) -> Result<u64, InvalidLimit> {
        let invalid = |reason| InvalidLimit {
            field: "percent_of_window",
            reason,
        };
        // A number that is none is in no range.
        if !(0.0..=100.0).contains(&percent) {
            return Err(invalid("must be between 0 and 100"));
        }
        let window = self.window.ok_or(invalid("needs a known window"))?;
        Ok((percent / 100.0 * window as f64).floor() as u64)
    }
}

/// The limit of one item: the default where none was asked for, none where 0 was.
pub fn per_item_tokens(asked: Option<u32>) -> Option<usize> {
    match asked {
        None => Some(PER_ITEM_TOKENS),
        Some(0) => None,
        Some(tokens) => Some(tokens as usize),
    }
}

#[cfg(test)]
mod tests;
