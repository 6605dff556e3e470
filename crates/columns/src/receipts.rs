//! Receipts of a batch, and what becomes of them when its turns are forgotten.

use memfleet_domain::ids::TurnId;
use memfleet_domain::ingestion::{TurnReceipt, TurnState};
use memfleet_domain::turn::AcceptedTurn;

use crate::damage::{Result, damaged};
use crate::ids::to_turn_id;
use crate::reader::{Reader, put_text};

/// Receipts of a batch.
pub fn from_receipts(receipts: &[TurnReceipt]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(receipts.len() * 18);
    for receipt in receipts {
        bytes.extend_from_slice(receipt.id.as_bytes());
        bytes.push(match receipt.state {
            TurnState::Queued => 0,
            TurnState::Stored => 1,
            TurnState::DeadLettered => 2,
            TurnState::Forgotten => 3,
        });
        put_text(&mut bytes, receipt.reason.as_deref().unwrap_or_default());
    }
    bytes
}

/// Receipts of a batch.
pub fn to_receipts(bytes: &[u8]) -> Result<Vec<TurnReceipt>> {
    let mut reader = Reader(bytes);
    let mut receipts = Vec::new();
    while !reader.0.is_empty() {
        let id = to_turn_id(reader.bytes(16)?)?;
        let state = match reader.bytes(1)?[0] {
            0 => TurnState::Queued,
            1 => TurnState::Stored,
            2 => TurnState::DeadLettered,
            3 => TurnState::Forgotten,
            other => return Err(damaged(format!("{other} is no state of a turn"))),
        };
        let reason = Some(reader.text()?).filter(|reason| !reason.is_empty());
        receipts.push(TurnReceipt { id, state, reason });
    }
    Ok(receipts)
}

/// The receipts of a batch while its turns are judged one after the other. A replay may bring only some of the turns, and a
/// batch may name a turn twice.
#[derive(Debug, Default)]
pub struct Receipts {
    all: Vec<TurnReceipt>,
    /// How many of them are of an earlier delivery.
    known: usize,
    given: Vec<TurnReceipt>,
}

impl Receipts {
    /// Begins with the receipts of an earlier delivery, if there was one.
    pub fn of(known: Vec<TurnReceipt>) -> Self {
        Self {
            known: known.len(),
            given: Vec::with_capacity(known.len()),
            all: known,
        }
    }

    /// Where the next turn stands in its batch, and its receipt if that is settled. What was dead-lettered is tried again.
    pub fn open(&self, turn: TurnId) -> (usize, Option<TurnReceipt>) {
        let Some(ordinal) = self.place_of(turn) else {
            return (self.all.len(), None);
        };
        let settled = Some(&self.all[ordinal]);
        let settled = settled.filter(|receipt| receipt.state != TurnState::DeadLettered);
        (ordinal, settled.cloned())
    }

    fn place_of(&self, turn: TurnId) -> Option<usize> {
        let (known, index) = (&self.all[..self.known], self.given.len());
        match known.get(index) {
            Some(receipt) if receipt.id == turn => Some(index),
            _ => known.iter().position(|receipt| receipt.id == turn),
        }
    }

    /// What became of the turn that was opened last.
    pub fn give(&mut self, ordinal: usize, receipt: TurnReceipt) {
        self.given.push(receipt.clone());
        match self.all.get_mut(ordinal) {
            Some(known) => *known = receipt,
            None => self.all.push(receipt),
        }
    }

    /// Marks the receipts of these turns.
    pub fn forget(&mut self, is_gone: impl Fn(&TurnId) -> bool) {
        for receipts in [&mut self.all, &mut self.given] {
            forget(receipts, &is_gone);
        }
    }

    /// The receipts of the batch, and those of this delivery alone.
    pub fn close(self) -> (Vec<TurnReceipt>, Vec<TurnReceipt>) {
        (self.all, self.given)
    }
}

/// The receipt of a turn that was stored.
pub fn stored(turn: TurnId) -> TurnReceipt {
    TurnReceipt {
        id: turn,
        state: TurnState::Stored,
        reason: None,
    }
}

/// The receipts of turns that are not stored since their space was forgotten.
pub fn forgotten(turns: &[AcceptedTurn]) -> Vec<TurnReceipt> {
    turns.iter().map(|turn| of_forgotten(turn.id)).collect()
}

/// Marks the receipts of these turns; whether there was one.
pub fn forget(receipts: &mut [TurnReceipt], is_gone: impl Fn(&TurnId) -> bool) -> bool {
    let mut touched = false;
    for receipt in receipts {
        if is_gone(&receipt.id) {
            *receipt = of_forgotten(receipt.id);
            touched = true;
        }
    }
    touched
}

/// Adds a receipt for each of the forgotten turns that has none.
pub fn settle(receipts: &mut Vec<TurnReceipt>, gone: &[TurnId]) {
    for id in gone {
        if !receipts.iter().any(|receipt| receipt.id == *id) {
            receipts.push(of_forgotten(*id));
        }
    }
}

fn of_forgotten(id: TurnId) -> TurnReceipt {
    TurnReceipt {
        id,
        state: TurnState::Forgotten,
        reason: None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn receipt(id: u8, reason: Option<&str>) -> TurnReceipt {
        TurnReceipt {
            id: TurnId::from_bytes([id; 16]),
            state: TurnState::DeadLettered,
            reason: reason.map(str::to_owned),
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = to_receipts(&bytes);
        }
    }

    #[test]
    fn receipts_read_back_and_lose_their_reason_when_forgotten() {
        let mut receipts = vec![receipt(1, Some("X: y")), receipt(2, None)];
        assert_eq!(to_receipts(&from_receipts(&receipts)).unwrap(), receipts);
        let gone = [receipts[0].id, TurnId::from_bytes([3; 16])];
        assert!(forget(&mut receipts, |id| gone.contains(id)));
        settle(&mut receipts, &gone);
        let [first, second, third] = &receipts[..] else {
            panic!("{receipts:?}");
        };
        assert_eq!(*first, of_forgotten(gone[0]));
        assert_eq!(*second, receipt(2, None));
        assert_eq!(*third, of_forgotten(gone[1]));
    }

    #[test]
    fn a_replay_of_some_turns_finds_their_receipts() {
        let known = vec![
            receipt(1, None),
            receipt(1, None),
            stored(TurnId::from_bytes([2; 16])),
        ];
        let mut receipts = Receipts::of(known.clone());
        let open = |receipts: &Receipts, id| receipts.open(TurnId::from_bytes([id; 16]));
        assert_eq!(open(&receipts, 2), (2, Some(known[2].clone())));
        assert_eq!(open(&receipts, 3), (3, None));
        assert_eq!(open(&receipts, 1), (0, None));
        receipts.give(0, stored(known[0].id));
        assert_eq!(open(&receipts, 1), (1, None));
        let (all, given) = receipts.close();
        assert_eq!((all.len(), given), (3, vec![stored(known[0].id)]));
    }
}
