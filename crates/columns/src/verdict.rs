//! What a ledger does with a turn of a batch: the decision alone, from what it knew before.

use std::collections::HashMap;

use memfleet_domain::ids::TurnId;
use memfleet_domain::ingestion::{TurnReceipt, TurnState};
use memfleet_domain::turn::{AcceptedTurn, ContentHash};

/// Places beyond are not kept, so that no import brings positions near the end of their numbers.
const LAST_PLACE: u32 = u32::MAX / 2;

/// A turn that was forgotten.
#[derive(Debug, Clone, Copy)]
pub struct Tombstone {
    /// The last position of acceptance that the forget covers.
    pub last: i64,
    /// The whole space was forgotten with it or since.
    pub is_of_space: bool,
}

impl Tombstone {
    /// True if a turn under its id that comes with this acceptance stays forgotten. A later one is the same message sent again (an
    /// external id, or a place in a history), unless the whole space was forgotten in between.
    pub fn covers(&self, acceptance: i64) -> bool {
        acceptance <= self.last || !self.is_of_space
    }
}

/// What the ledger knows of the turns of a batch, and of those that they replace, before it is stored.
#[derive(Debug, Default)]
pub struct Before {
    /// Content of the turns that are there.
    pub hashes: HashMap<TurnId, ContentHash>,
    /// Turns that it had to forget.
    pub forgotten: HashMap<TurnId, Tombstone>,
}

/// What becomes of a turn.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing is to be done.
    Settled(TurnReceipt),
    /// It is new.
    New {
        /// Of its content.
        hash: ContentHash,
        /// The turn that it replaces, if that is there.
        replaces: Option<TurnId>,
    },
}

impl Before {
    /// Decides about one turn.
    pub fn judge(&self, turn: &AcceptedTurn, acceptance: i64) -> Verdict {
        let settled = |state, reason| {
            Verdict::Settled(TurnReceipt {
                id: turn.id,
                state,
                reason,
            })
        };
        let forgotten = self.forgotten.get(&turn.id);
        if forgotten.is_some_and(|tombstone| tombstone.covers(acceptance)) {
            return settled(TurnState::Forgotten, None);
        }
        let hash = turn.content_hash();
        match self.hashes.get(&turn.id) {
            // What was captured comes again with every request of its conversation, and the first time it was told counts.
            Some(stored) if *stored == hash || turn.is_captured() => {
                return settled(TurnState::Stored, None);
            }
            Some(stored) => {
                let reason = format!(
                    "EXTERNAL_ID_CONFLICT: the external id belongs to a turn with other content (stored {stored}, given {hash})"
                );
                return settled(TurnState::DeadLettered, Some(reason));
            }
            None => {}
        }
        let replaces = match turn.replaces {
            Some(old) if self.hashes.contains_key(&old) => Some(old),
            // An edit of a turn that was forgotten stands for itself.
            Some(old) if self.forgotten.contains_key(&old) => None,
            Some(old) => {
                let reason = format!("REPLACED_TURN_UNKNOWN: there is no turn {old} to replace");
                return settled(TurnState::DeadLettered, Some(reason));
            }
            None => None,
        };
        Verdict::New { hash, replaces }
    }

    /// Notes that a new turn is there now; whether it had been forgotten: then it is a turn like any other again.
    pub fn stored(&mut self, turn: TurnId, hash: ContentHash) -> bool {
        self.hashes.insert(turn, hash);
        self.forgotten.remove(&turn).is_some()
    }
}

/// The position of a turn behind the last one of its session: its place, if it brings one that is further.
pub fn end_of_session(last: Option<u32>, place: Option<u32>) -> u32 {
    let end = last.map_or(0, |last| last + 1);
    let place = place.filter(|place| *place <= LAST_PLACE);
    place.map_or(end, |place| place.max(end))
}

#[cfg(test)]
mod tests {
    use memfleet_ports::conformance::samples::{edit, turn};

    use super::*;

    #[test]
    fn a_place_is_taken_unless_it_is_behind_or_out_of_all_bounds() {
        assert_eq!(end_of_session(None, None), 0);
        assert_eq!(end_of_session(Some(3), Some(9)), 9);
        assert_eq!(end_of_session(Some(3), Some(1)), 4);
        assert_eq!(end_of_session(Some(3), Some(u32::MAX)), 4);
    }

    #[test]
    fn what_was_forgotten_comes_back_only_to_a_space_that_was_forgotten_as_a_whole() {
        let told = turn("a", "one");
        for is_of_space in [false, true] {
            let mut before = Before::default();
            let tombstone = Tombstone {
                last: 5,
                is_of_space,
            };
            before.forgotten.insert(told.id, tombstone);
            let state = |turn: &AcceptedTurn, acceptance| match before.judge(turn, acceptance) {
                Verdict::Settled(receipt) => Some(receipt.state),
                Verdict::New { .. } => None,
            };
            assert_eq!(state(&told, 5), Some(TurnState::Forgotten));
            let later = (!is_of_space).then_some(TurnState::Forgotten);
            assert_eq!(state(&told, 6), later);
            assert_eq!(state(&turn("b", "one"), 6), None);
            assert_eq!(state(&edit(&told, "b", "two"), 1), None);
        }
    }
}
