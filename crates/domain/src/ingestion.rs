//! What travels from `Remember` to the ledger: a batch of accepted turns, its states, and its receipt.

use serde::{Deserialize, Serialize};

use crate::ids::{BatchId, TurnId};
use crate::scope::Scope;
use crate::turn::{AcceptedTurn, ContentHash};

/// The turns of one `Remember`, applied to the ledger once and together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Derived from the idempotency key: a retry is the same batch.
    pub id: BatchId,
    /// Where it goes.
    pub scope: Scope,
    /// The turns, in the order in which they were said.
    pub turns: Vec<AcceptedTurn>,
}

impl Batch {
    /// The hash of all turns: a retry with the same key must bring the same payload.
    pub fn payload_hash(&self) -> ContentHash {
        let mut hasher = blake3::Hasher::new();
        for turn in &self.turns {
            hasher.update(turn.id.as_bytes());
            hasher.update(&turn.content_hash().0);
        }
        ContentHash(*hasher.finalize().as_bytes())
    }
}

/// How far a turn has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnState {
    /// Durable in the queue.
    Queued,
    /// In the ledger and searchable.
    Stored,
    /// Refused by the ledger for good; listed with its reason and replayable.
    DeadLettered,
    /// Removed by a forget or by retention.
    Forgotten,
}

/// One turn of a receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnReceipt {
    /// The turn.
    pub id: TurnId,
    /// How far it has come.
    pub state: TurnState,
    /// Why, where the state is [`TurnState::DeadLettered`].
    pub reason: Option<String>,
}

/// The answer to a `Remember`: the turns are durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The batch; as text it is the consistency token.
    pub batch: BatchId,
    /// One a turn, in the order given.
    pub turns: Vec<TurnReceipt>,
    /// Whether this batch had been accepted before (same idempotency key, same payload).
    pub duplicate: bool,
}
