//! How a block is assembled.

use crate::tokenizer::Tokenizer;
use chrono_tz::Tz;

/// The settings of one assembly.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    /// Upper bound of the block in tokens. 0 gives an empty block.
    pub budget_tokens: usize,
    /// What counts the tokens.
    pub tokenizer: &'a Tokenizer,
    /// At most this many turns; default: no limit.
    pub max_items: Option<usize>,
    /// At most this many tokens a turn, its speaker included; longer turns become excerpts or are left out. Default: no limit.
    pub per_item_tokens: Option<usize>,
    /// An excerpt of fewer tokens is not worth its place. Default 24.
    pub minimum_useful_tokens: usize,
    /// Whether turns may be cut to their relevant sentences. Default true.
    pub excerpts: bool,
    /// The zone of rendered dates. Default UTC.
    pub time_zone: Tz,
    /// Encloses the block in `<memory nonce="…">` and `</memory nonce="…">`. Default: no enclosure.
    pub nonce: Option<Nonce<'a>>,
}

impl<'a> Options<'a> {
    /// The defaults, for a budget.
    pub fn new(budget_tokens: usize, tokenizer: &'a Tokenizer) -> Self {
        Self {
            budget_tokens,
            tokenizer,
            max_items: None,
            per_item_tokens: None,
            minimum_useful_tokens: 24,
            excerpts: true,
            time_zone: Tz::UTC,
            nonce: None,
        }
    }
}

/// A delimiter that stored text cannot know: 4 to 64 ASCII letters and digits, new for every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonce<'a>(&'a str);

impl<'a> Nonce<'a> {
    /// Checks a nonce; `None` if it has another form.
    pub fn new(nonce: &'a str) -> Option<Self> {
        let well_formed = (4..=64).contains(&nonce.len())
            && nonce.bytes().all(|byte| byte.is_ascii_alphanumeric());
        well_formed.then_some(Self(nonce))
    }

    /// The text of the nonce.
    pub fn as_str(self) -> &'a str {
        self.0
    }
}
