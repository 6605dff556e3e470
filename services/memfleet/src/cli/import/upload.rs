//! Sends turns in batches and follows them until they are stored. Some batches are on their way while the oldest is waited
//! for: the node never idles, and what it may still lose track of stays small.

use std::collections::VecDeque;

use memfleet_domain::ids::{BatchId, SpaceId, TurnId};
use memfleet_domain::ingestion::{Receipt, TurnReceipt, TurnState};
use memfleet_ports::memory::{Imported, NewTurn, RememberRequest};

use crate::cli::exit::Error;
use crate::cli::{Handle, watch};
use crate::output::Progress;
use crate::patience;

/// Turns a batch.
const BATCH_TURNS: usize = 64;
/// Bytes of text a batch, well below what a message may have.
const BATCH_BYTES: usize = 1 << 20;
/// Batches on their way.
const IN_FLIGHT: usize = 16;

/// What became of the turns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Can be found now.
    pub stored: u64,
    /// Durable, not waited for.
    pub accepted: u64,
    /// Were there before.
    pub skipped: u64,
    /// Were forgotten, and stay so: an import that is run again must not bring them back.
    pub forgotten: u64,
    /// Refused for good, and why.
    pub dead_letters: Vec<(TurnId, String)>,
}

impl Tally {
    /// Counts turns whose states are final; `known` says that an earlier import brought them there.
    pub fn add(&mut self, turns: Vec<TurnReceipt>, known: bool) {
        for TurnReceipt { id, state, reason } in turns {
            match state {
                TurnState::DeadLettered => self.dead_letters.push((id, reason.unwrap_or_default())),
                TurnState::Forgotten => self.forgotten += 1,
                _ if known => self.skipped += 1,
                _ => self.stored += 1,
            }
        }
    }

    /// Counts what a node said of an import, once the turns that it took have their final states. Of those that failed it does
    /// not say whether they were there before; they count as new.
    pub fn add_import(&mut self, said: &Imported, turns: Vec<TurnReceipt>) {
        let mut settled = Self::default();
        settled.add(turns, false);
        let failed = settled.forgotten + settled.dead_letters.len() as u64;
        let stored = said.accepted.saturating_sub(failed);
        let taken = said.accepted + said.duplicates;
        self.stored += stored;
        self.skipped += taken.saturating_sub(failed + stored);
        self.forgotten += said.forgotten + settled.forgotten;
        self.dead_letters.extend(settled.dead_letters);
    }
}

/// An import that is going on.
pub struct Upload<'a> {
    handle: &'a Handle,
    progress: &'a Progress,
    wait: bool,
    in_flight: VecDeque<(SpaceId, BatchId)>,
    tally: Tally,
}

impl<'a> Upload<'a> {
    /// An import through `handle`; with `wait` it follows every turn until it can be found.
    pub fn new(handle: &'a Handle, progress: &'a Progress, wait: bool) -> Self {
        Self {
            handle,
            progress,
            wait,
            in_flight: VecDeque::new(),
            tally: Tally::default(),
        }
    }

    /// Sends turns, in the order of the time at which they were said.
    pub async fn send(&mut self, space: &SpaceId, turns: Vec<NewTurn>) -> Result<(), Error> {
        for batch in batches(by_time(turns)) {
            let receipt = self.remember(space, batch).await?;
            let count = receipt.turns.len() as u64;
            let queued = |turn: &TurnReceipt| turn.state == TurnState::Queued;
            if receipt.duplicate && !receipt.turns.iter().any(queued) {
                self.tally.add(receipt.turns, true);
                self.progress.advance(count);
            } else if self.wait {
                self.in_flight.push_back((space.clone(), receipt.batch));
            } else {
                self.tally.accepted += count;
                self.progress.advance(count);
            }
            if self.in_flight.len() >= IN_FLIGHT {
                self.settle_oldest().await?;
            }
        }
        Ok(())
    }

    /// Waits for what is on its way.
    pub async fn finish(mut self) -> Result<Tally, Error> {
        while !self.in_flight.is_empty() {
            self.settle_oldest().await?;
        }
        Ok(self.tally)
    }

    /// Waits while the queue of the node is full: an import is in no hurry.
    async fn remember(&self, space: &SpaceId, turns: Vec<NewTurn>) -> Result<Receipt, Error> {
        let request = RememberRequest {
            space: space.clone(),
            turns,
            idempotency_key: None,
        };
        let (memory, call) = (&*self.handle.memory, || self.handle.call());
        Ok(patience::remember(memory, call, &request).await?)
    }

    async fn settle_oldest(&mut self) -> Result<(), Error> {
        let Some((space, batch)) = self.in_flight.pop_front() else {
            return Ok(());
        };
        let turns = watch::settled(self.handle, &space, batch).await?;
        self.progress.advance(turns.len() as u64);
        self.tally.add(turns, false);
        Ok(())
    }
}

/// Sorted by event time; a turn without one stays behind the turn before it.
fn by_time(turns: Vec<NewTurn>) -> Vec<NewTurn> {
    let mut last = None;
    let mut timed = Vec::with_capacity(turns.len());
    for turn in turns {
        last = turn.event_time.or(last);
        timed.push((last, turn));
    }
    timed.sort_by_key(|(time, _)| *time);
    timed.into_iter().map(|(_, turn)| turn).collect()
}

/// Cuts a list into batches. The cuts depend on the beginning only: what is appended later leaves full batches as they are.
fn batches(turns: Vec<NewTurn>) -> Vec<Vec<NewTurn>> {
    let mut batches = Vec::<Vec<NewTurn>>::new();
    let mut bytes = 0;
    for turn in turns {
        let size = turn.content.text.len();
        let fits = batches
            .last()
            .is_some_and(|batch| batch.len() < BATCH_TURNS && bytes + size <= BATCH_BYTES);
        match batches.last_mut().filter(|_| fits) {
            Some(batch) => batch.push(turn),
            None => {
                bytes = 0;
                batches.push(vec![turn]);
            }
        }
        bytes += size;
    }
    batches
}

#[cfg(test)]
mod tests {
    use memfleet_domain::ids::{SessionId, Speaker};
    use memfleet_domain::turn::{Content, Role, Trust};
    use proptest::prelude::*;

    use super::*;
    use crate::cli::values::instant;

    fn turn(text: &str, time: Option<&str>) -> NewTurn {
        NewTurn {
            session: SessionId::new("s").unwrap(),
            external_id: None,
            speaker: Speaker::new("Noor").unwrap(),
            role: Role::User,
            content: Content {
                text: text.to_owned(),
                media: vec![],
            },
            event_time: time.map(|time| instant(time).unwrap()),
            metadata: std::collections::BTreeMap::new(),
            trust: Trust::User,
            replaces: None,
        }
    }

    #[test]
    fn turns_are_sorted_by_time_and_those_without_follow_their_neighbour() {
        let turns = vec![
            turn("c", Some("2025-03-01")),
            turn("d", None),
            turn("a", Some("2025-01-01")),
            turn("b", None),
        ];
        let sorted = by_time(turns)
            .into_iter()
            .map(|turn| turn.content.text)
            .collect::<String>();
        assert_eq!(sorted, "abcd");
    }

    #[test]
    fn what_was_forgotten_is_not_counted_as_there() {
        let states = [
            TurnState::Stored,
            TurnState::Forgotten,
            TurnState::DeadLettered,
        ];
        let turns = states.map(|state| TurnReceipt {
            id: TurnId::from_bytes([state as u8; 16]),
            state,
            reason: None,
        });
        for known in [true, false] {
            let mut tally = Tally::default();
            tally.add(turns.to_vec(), known);
            let (there, others) = (tally.skipped + tally.stored, tally.dead_letters.len());
            assert_eq!((there, tally.forgotten, others), (1, 1, 1));
            assert_eq!(tally.skipped == 1, known);
        }
    }

    #[test]
    fn an_import_counts_each_turn_once() {
        let turn = |state| TurnReceipt {
            id: TurnId::from_bytes([state as u8; 16]),
            state,
            reason: None,
        };
        let states = [TurnState::Stored, TurnState::Stored, TurnState::Forgotten];
        let said = Imported {
            accepted: 2,
            duplicates: 3,
            forgotten: 4,
            batches: vec![],
        };
        let mut tally = Tally::default();
        tally.add_import(&said, states.map(turn).to_vec());
        let Tally {
            stored,
            skipped,
            forgotten,
            ..
        } = tally;
        assert_eq!((stored, skipped, forgotten), (1, 3, 5));
    }

    proptest! {
        #[test]
        fn batches_hold_every_turn_once_in_order_and_within_bounds(sizes in prop::collection::vec(0usize..300_000, 0..200)) {
            let turns = sizes.iter().map(|size| turn(&"x".repeat(*size), None)).collect::<Vec<_>>();
            let cut = batches(turns.clone());
            for batch in &cut {
                let bytes = batch.iter().map(|turn| turn.content.text.len()).sum::<usize>();
                prop_assert!(!batch.is_empty() && batch.len() <= BATCH_TURNS && (bytes <= BATCH_BYTES || batch.len() == 1));
            }
            prop_assert_eq!(cut.concat(), turns);
        }

        #[test]
        fn what_is_appended_leaves_full_batches_as_they_are(before in 0usize..300, more in 0usize..100) {
            let all = (0..before + more).map(|number| turn(&number.to_string(), None)).collect::<Vec<_>>();
            let (first, second) = (batches(all[..before].to_vec()), batches(all));
            let full = before / BATCH_TURNS;
            prop_assert_eq!(&first[..full], &second[..full]);
        }
    }
}
