//! The public API that remembers what passes between a caller and a model.

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_domain::assembly::SessionOrigin;
use memfleet_domain::ids::{BatchId, ExchangeName, SessionId, SpaceId, Speaker};
use memfleet_domain::ingestion::TurnReceipt;
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::Metadata;

use crate::assembly::Prompt;
use crate::context::Context;

/// What passed.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordTurnRequest {
    /// Where it is kept.
    pub space: SpaceId,
    /// The conversation; absent: as the provider's request tells, else by what was said.
    pub session: Option<SessionId>,
    /// The exchange; absent: what the user says last names it.
    pub exchange: Option<ExchangeName>,
    /// What the model was told, with what memory put into it or without; it may hold the whole conversation.
    pub prompt: Prompt,
    /// What the provider answered, as one body or as a recorded stream; may be empty.
    pub answer: Vec<u8>,
    /// Whether the answer is only a part.
    pub partial: bool,
    /// The model, a label of what it wrote; may be empty.
    pub model: String,
    /// Who the model is; absent: `assistant`.
    pub assistant: Option<Speaker>,
    /// Who the user is; absent: `user`.
    pub user: Option<Speaker>,
    /// Event time of what is new.
    pub event_time: Option<Timestamp>,
    /// Labels of all that is new.
    pub metadata: Metadata,
    /// Whether system messages are kept.
    pub include_system: bool,
}

/// What was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// What a read waits for to see it; absent where nothing was new.
    pub token: Option<BatchId>,
    /// The turns that are new, in order.
    pub turns: Vec<TurnReceipt>,
    /// Messages that had been recorded before.
    pub duplicates: u32,
    /// Messages that were forgotten, and stay so though they are sent again; 0 in the answer of an older gateway.
    pub forgotten: u32,
    /// Messages without any text of their own.
    pub left_out: u32,
    /// Messages that an injected block was taken out of.
    pub blocks_removed: u32,
    /// The conversation.
    pub session: SessionId,
    /// How it is known; absent in the answer of an older gateway.
    pub session_origin: Option<SessionOrigin>,
}

/// The `Capture` service.
#[async_trait]
pub trait Capture: Send + Sync {
    /// Keeps what is new of an exchange.
    async fn record_turn(
        &self,
        context: &Context,
        request: RecordTurnRequest,
    ) -> Result<Recorded, Fault>;
}
