//! The public API of context assembly (AMP, the Augmented Memory Protocol; its gates and strategies join later).

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_domain::ids::{BatchId, DerivationId, SpaceId, TurnId};

use crate::context::Context;
use crate::retriever::Query;

/// Memory for one prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct AssembleRequest {
    /// What to find memory for, and where; its `k` bounds the candidates, and their `neighbours` are candidates of less worth. Its text
    /// may be empty where narratives are named: then it is their headlines.
    pub query: Query,
    /// Only what was said of these; empty: anything.
    pub narratives: Vec<DerivationId>,
    /// Upper bound of the block, counted with `tokenizer`.
    pub budget_tokens: u32,
    /// Name of the tokenizer that the budget is counted with, for example `o200k_base`.
    pub tokenizer: String,
    /// At most this many turns; absent: as many as fit.
    pub max_items: Option<u32>,
    /// At most this many tokens a turn, longer ones become excerpts; absent: no cap.
    pub max_item_tokens: Option<u32>,
    /// Whether turns may be cut to their relevant sentences.
    pub excerpts: bool,
    /// Writes that the answer must see.
    pub wait_for: Vec<BatchId>,
}

/// A turn in the block.
#[derive(Debug, Clone, PartialEq)]
pub struct AssembledItem {
    /// Where it comes from.
    pub space: SpaceId,
    /// The turn.
    pub turn: TurnId,
    /// Its score in the search; lower than that of its hit for a neighbour.
    pub score: f32,
    /// Its tokens in the block, without headings.
    pub tokens: u32,
    /// Whether it was cut.
    pub excerpt: bool,
}

/// The rendered memory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Assembled {
    /// What goes into the prompt; empty when nothing was found.
    pub block: String,
    /// Tokens of the block, at most the budget.
    pub tokens: u32,
    /// The turns in it, in the order of the block.
    pub items: Vec<AssembledItem>,
    /// Candidates that did not fit or were duplicates.
    pub left_out: u32,
    /// What was missing, as in [`crate::retriever::Found::degraded`].
    pub degraded: Vec<String>,
}

/// The `Assembly` service.
#[async_trait]
pub trait Assembly: Send + Sync {
    /// Chooses and renders the memory that belongs in a prompt.
    async fn assemble(
        &self,
        context: &Context,
        request: AssembleRequest,
    ) -> Result<Assembled, Fault>;

    /// Tokens of each text.
    async fn count_tokens(
        &self,
        context: &Context,
        tokenizer: &str,
        texts: &[String],
    ) -> Result<Vec<u32>, Fault>;
}
