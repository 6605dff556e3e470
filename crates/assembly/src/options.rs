//! How a block is assembled.

use crate::budget::MINIMUM_USEFUL_TOKENS;
use crate::containment::Prompt;
use crate::render;
use crate::template::Template;
use crate::tokenizer::Tokenizer;
use crate::weights::Weights;
use chrono::{DateTime, Utc};
use chrono_tz::Tz;

/// The settings of one assembly.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    /// Upper bound of the block in tokens, and of what it adds to the text before it. 0 gives an empty block.
    pub budget_tokens: usize,
    /// What counts the tokens.
    pub tokenizer: &'a Tokenizer,
    /// At most this many items; default: no limit.
    pub max_items: Option<usize>,
    /// At most this many items of one session; default: no limit.
    pub max_per_session: Option<usize>,
    /// At most this many items of one source; default: no limit.
    pub max_per_source: Option<usize>,
    /// At most this many tokens an item, its speaker included; longer ones become excerpts or are left out. Default: no limit.
    pub per_item_tokens: Option<usize>,
    /// An excerpt of fewer tokens is not worth its place. Default 24.
    pub minimum_useful_tokens: usize,
    /// Whether items may be cut to their relevant sentences. Default true.
    pub excerpts: bool,
    /// Whether an item that is too long, and has no relevant sentences, is cut at its end: to the tokens of one item, and the best to the
    /// budget where nothing else fits (AMP items 71 and 72). Default false.
    pub cut_at_end: bool,
    /// What ranks candidates. Default: their score alone.
    pub weights: Weights,
    /// The least relevance that is enough, where a candidate was scored. Default: none.
    pub threshold: Option<f32>,
    /// What is done with what tools and the web say. Default: it is included.
    pub untrusted: Untrusted,
    /// Whether superseded memories may enter, with the interval in which they held. Default false.
    pub include_superseded: bool,
    /// What the prompt says already. Default: nothing.
    pub prompt: Option<&'a Prompt>,
    /// In which order items stand. Default chronological.
    pub order: Order,
    /// The form of the block. Default `Template::turns()`.
    pub template: &'a Template,
    /// How the block is told from what stands around it. Default plain.
    pub enclosure: Enclosure<'a>,
    /// The zone of rendered dates. Default UTC.
    pub time_zone: Tz,
    /// The present: shown as a date where the template does, and what ages are counted from. Without it nothing is shown, and ages count
    /// from the newest candidate.
    pub as_of: Option<DateTime<Utc>>,
    /// Text that the block begins with, line end included: [`ProfileSection::lead`](crate::ProfileSection::lead).
    /// It counts as part of the block. Default: none.
    pub lead: &'a str,
    /// Where the block goes. Default: to the start of an empty text.
    pub place: Place<'a>,
}

impl<'a> Options<'a> {
    /// The defaults, for a budget.
    pub fn new(budget_tokens: usize, tokenizer: &'a Tokenizer) -> Self {
        Self {
            budget_tokens,
            tokenizer,
            max_items: None,
            max_per_session: None,
            max_per_source: None,
            per_item_tokens: None,
            minimum_useful_tokens: MINIMUM_USEFUL_TOKENS,
            excerpts: true,
            cut_at_end: false,
            weights: Weights::plain(),
            threshold: None,
            untrusted: Untrusted::default(),
            include_superseded: false,
            prompt: None,
            order: Order::default(),
            template: Template::turns(),
            enclosure: Enclosure::default(),
            time_zone: Tz::UTC,
            as_of: None,
            lead: "",
            place: Place::default(),
        }
    }

    /// Tokens that an empty block adds to the text before it: separator, lead, enclosure, notice
    /// and date, counted alone.
    pub fn overhead(&self) -> usize {
        let (open, close) = render::frame(self);
        let bare = [self.place.separator, &open, &close].concat();
        self.tokenizer.added(self.place.before, &bare)
    }
}

/// Where a block goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place<'a> {
    /// The text that it is put after. Tokens may merge over the seam, so what is added is counted with it.
    pub before: &'a str,
    /// What the caller writes between the two.
    pub separator: &'a str,
}

impl<'a> Place<'a> {
    /// At the end of a text, after a blank line.
    pub fn after(before: &'a str) -> Self {
        let separator = if before.is_empty() { "" } else { "\n\n" };
        Self { before, separator }
    }
}

/// What is done with what tools and the web say (AMP item 112).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Untrusted {
    /// It is treated as everything else.
    #[default]
    Include,
    /// It ranks behind everything else.
    DownRank,
    /// It stands in a section of its own at the end of the block.
    Segregate,
    /// It is left out.
    Exclude,
}

/// In which order the items of a block stand (AMP item 89).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Best first.
    Rank,
    /// Sessions by the time of their first item, items by their place in the session.
    #[default]
    Chronological,
    /// Sessions by their best item, the best session last; items by their place in the session.
    BestLast,
    /// Best first, second best last, and so on inwards.
    Sandwich,
}

/// How a block is told from what stands around it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Enclosure<'a> {
    /// By nothing.
    #[default]
    Plain,
    /// By `<memory nonce="…">` and `</memory nonce="…">`. What tools and the web say is marked line by line as well.
    Delimited(Nonce<'a>),
    /// The same, and every line of every item is marked.
    Datamarked(Nonce<'a>),
}

impl<'a> Enclosure<'a> {
    /// Enclosure of the same kind with another nonce; plain without one.
    #[must_use]
    pub fn with(self, nonce: Option<Nonce<'a>>) -> Self {
        match (self, nonce) {
            (Self::Plain, _) | (_, None) => Self::Plain,
            (Self::Delimited(_), Some(nonce)) => Self::Delimited(nonce),
            (Self::Datamarked(_), Some(nonce)) => Self::Datamarked(nonce),
        }
    }

    /// The nonce, where there is one.
    pub fn nonce(self) -> Option<Nonce<'a>> {
        match self {
            Self::Plain => None,
            Self::Delimited(nonce) | Self::Datamarked(nonce) => Some(nonce),
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

    /// What encloses a block: before its first line, and after its last.
    pub(crate) fn tags(self) -> (String, String) {
        let nonce = self.0;
        (
            format!("<memory nonce=\"{nonce}\">\n"),
            format!("</memory nonce=\"{nonce}\">"),
        )
    }

    /// What stands before every line of marked text: the first four letters and a bar.
    pub fn mark(self) -> String {
        format!("{}|", &self.0[..4])
    }
}
