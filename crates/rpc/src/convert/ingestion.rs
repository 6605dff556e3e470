//! Receipts and the states of turns.

use memfleet_domain::ingestion::{Receipt, TurnReceipt, TurnState};

use super::{Checked, Fields};
use crate::proto;

impl From<TurnState> for proto::TurnState {
    fn from(state: TurnState) -> Self {
        match state {
            TurnState::Queued => Self::Queued,
            TurnState::Stored => Self::Stored,
            TurnState::DeadLettered => Self::DeadLettered,
            TurnState::Forgotten => Self::Forgotten,
        }
    }
}

impl From<TurnReceipt> for proto::TurnReceipt {
    fn from(receipt: TurnReceipt) -> Self {
        Self {
            turn_id: receipt.id.to_string(),
            state: proto::TurnState::from(receipt.state).into(),
            reason: receipt.reason.unwrap_or_default(),
        }
    }
}

impl Checked for proto::TurnReceipt {
    type Value = TurnReceipt;

    fn check(self, fields: &mut Fields) -> Option<TurnReceipt> {
        let id = fields.id("turn_id", &self.turn_id, "the id of a turn");
        let state = match self.state() {
            proto::TurnState::Unspecified => fields.refuse("state", "is not known"),
            proto::TurnState::Queued => Some(TurnState::Queued),
            proto::TurnState::Stored => Some(TurnState::Stored),
            proto::TurnState::DeadLettered => Some(TurnState::DeadLettered),
            proto::TurnState::Forgotten => Some(TurnState::Forgotten),
        };
        let reason = (!self.reason.is_empty()).then_some(self.reason);
        Some(TurnReceipt {
            id: id?,
            state: state?,
            reason,
        })
    }
}

impl From<Receipt> for proto::RememberResponse {
    fn from(receipt: Receipt) -> Self {
        Self {
            token: receipt.batch.to_string(),
            turns: receipt.turns.into_iter().map(Into::into).collect(),
            duplicate: receipt.duplicate,
        }
    }
}

impl Checked for proto::RememberResponse {
    type Value = Receipt;

    fn check(self, fields: &mut Fields) -> Option<Receipt> {
        let batch = fields.id("token", &self.token, "the token of a receipt");
        let turns = fields.messages("turns", self.turns, usize::MAX);
        Some(Receipt {
            batch: batch?,
            turns: turns?,
            duplicate: self.duplicate,
        })
    }
}

impl From<TurnReceipt> for proto::WatchIngestionResponse {
    fn from(receipt: TurnReceipt) -> Self {
        Self {
            turn: Some(receipt.into()),
        }
    }
}

impl Checked for proto::WatchIngestionResponse {
    type Value = TurnReceipt;

    fn check(self, fields: &mut Fields) -> Option<TurnReceipt> {
        fields.message("turn", self.turn)
    }
}
