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
    /// The order of sessions. Default chronological.
    pub order: Order,
    /// The heading over the turns of a day. Default the date.
    pub heading: Heading,
    /// Encloses the block in `<memory nonce="…">` and `</memory nonce="…">`. Default: no enclosure.
    pub nonce: Option<Nonce<'a>>,
    /// One line at the top of the block, for example that what follows is reference data. Default empty: no line.
    pub notice: &'a str,
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
            order: Order::Chronological,
            heading: Heading::Date,
            nonce: None,
            notice: "",
        }
    }
}

/// The order of sessions in the block. Inside a session it is always the order of the conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The oldest first, by event time, else recorded time.
    #[default]
    Chronological,
    /// By the best score of the session, ascending: the best stands last, next to the question.
    BestLast,
}

/// What stands over the turns of one day. Turns of several sessions on the same day share it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Heading {
    /// Nothing.
    None,
    /// `[2023-05-08]`.
    #[default]
    Date,
    /// `[2023-05-08 13:56]`, the time of the first turn shown; sessions do not share it.
    DateTime,
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
