//! Sends turns in batches and follows them until they are stored. Some batches are on their way while the oldest is waited
//! for: the node never idles, and what it may still lose track of stays small.

use std::collections::{HashMap, VecDeque};

use memfleet_domain::ids::{BatchId, SpaceId, TurnId};
use memfleet_domain::ingestion::{Receipt, TurnReceipt, TurnState};
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::memory::{Imported, NewTurn, RememberRequest};

use super::Located;
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
    /// Facts and namings that took on what callers had decided about them.
    pub decided: u64,
    /// Messages and records of the file that were left out, and why.
    pub left_out: Vec<Located<String>>,
    /// Refused for good.
    pub dead_letters: Vec<DeadLetter>,
}

/// A turn that could not be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Its id.
    pub turn: TurnId,
    /// The message of the file that it is of; absent for a turn of an export.
    pub message: Option<String>,
    /// Why.
    pub reason: String,
}

/// The message of the file that each turn is of.
type Messages = HashMap<TurnId, String>;

impl Tally {
    /// Counts turns whose states are final; `known` says that an earlier import brought them there.
    pub fn add(&mut self, turns: Vec<TurnReceipt>, messages: &Messages, known: bool) {
        for TurnReceipt { id, state, reason } in turns {
            match state {
                TurnState::DeadLettered => self.dead_letters.push(DeadLetter {
                    turn: id,
                    message: messages.get(&id).cloned(),
                    reason: reason.unwrap_or_default(),
                }),
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
        settled.add(turns, &Messages::new(), false);
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
    in_flight: VecDeque<(SpaceId, BatchId, Messages)>,
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

    /// Counts messages that no turn could be made of.
    pub fn leave_out(&mut self, messages: Vec<Located<String>>) {
        self.tally.left_out.extend(messages);
    }

    /// Sends turns, in the order of the time at which they were said.
    pub async fn send(
        &mut self,
        space: &SpaceId,
        turns: Vec<Located<NewTurn>>,
    ) -> Result<(), Error> {
        for batch in batches(by_time(turns)) {
            let sent = batch.len() as u64;
            let Some((receipt, messages)) = self.remember(space, batch).await? else {
                self.progress.advance(sent);
                continue;
            };
            let count = receipt.turns.len() as u64;
            self.progress.advance(sent.saturating_sub(count));
            let queued = |turn: &TurnReceipt| turn.state == TurnState::Queued;
            if receipt.duplicate && !receipt.turns.iter().any(queued) {
                self.tally.add(receipt.turns, &messages, true);
                self.progress.advance(count);
            } else if self.wait {
                let batch = (space.clone(), receipt.batch, messages);
                self.in_flight.push_back(batch);
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

    /// Sends a batch, waiting while the queue of the node is full: an import is in no hurry. Turns
    /// that the node refuses are left out, and the others sent without them; none where no turn is
    /// left.
    async fn remember(
        &mut self,
        space: &SpaceId,
        mut turns: Vec<Located<NewTurn>>,
    ) -> Result<Option<(Receipt, Messages)>, Error> {
        while !turns.is_empty() {
            let request = RememberRequest {
                space: space.clone(),
                turns: turns.iter().map(|turn| turn.value.clone()).collect(),
                idempotency_key: None,
            };
            let (memory, call) = (&*self.handle.memory, || self.handle.call());
            match patience::remember(memory, call, &request).await {
                Ok(receipt) => {
                    let ids = receipt.turns.iter().map(|turn| turn.id);
                    let places = turns.into_iter().map(|turn| turn.place);
                    let messages = ids.zip(places).collect();
                    return Ok(Some((receipt, messages)));
                }
                Err(fault) => self
                    .tally
                    .left_out
                    .extend(refused(&fault, &mut turns).ok_or(fault)?),
            }
        }
        Ok(None)
    }

    async fn settle_oldest(&mut self) -> Result<(), Error> {
        let Some((space, batch, messages)) = self.in_flight.pop_front() else {
            return Ok(());
        };
        let turns = watch::settled(self.handle, &space, batch).await?;
        self.progress.advance(turns.len() as u64);
        self.tally.add(turns, &messages, false);
        Ok(())
    }
}

/// Takes the turns that a fault names out of a batch, each with the message of the file that it is
/// of; none where the fault is of something else.
fn refused(fault: &Fault, turns: &mut Vec<Located<NewTurn>>) -> Option<Vec<Located<String>>> {
    if fault.kind != FaultKind::InvalidArgument {
        return None;
    }
    let mut problems = HashMap::<usize, Vec<String>>::new();
    for violation in &fault.fields {
        let (index, field) = violation.field.strip_prefix("turns[")?.split_once(']')?;
        let index = index.parse().ok().filter(|index| *index < turns.len())?;
        let problem = format!(
            "{} {}",
            field.trim_start_matches('.'),
            violation.description
        );
        problems
            .entry(index)
            .or_default()
            .push(problem.trim().to_owned());
    }
    let mut index = 0..;
    let taken = turns.extract_if(.., |_| {
        index.next().is_some_and(|at| problems.contains_key(&at))
    });
    let places = taken.map(|turn| turn.place).collect::<Vec<_>>();
    let mut problems = problems.into_iter().collect::<Vec<_>>();
    problems.sort_unstable();
    let problems = problems.into_iter().map(|(_, all)| all.join("; "));
    let named = places.into_iter().zip(problems);
    let named = named
        .map(|(place, problem)| Located::new(place, problem))
        .collect::<Vec<_>>();
    (!named.is_empty()).then_some(named)
}

/// Sorted by event time; a turn without one stays behind the turn before it.
fn by_time(turns: Vec<Located<NewTurn>>) -> Vec<Located<NewTurn>> {
    let mut last = None;
    let mut timed = Vec::with_capacity(turns.len());
    for turn in turns {
        last = turn.value.event_time.or(last);
        timed.push((last, turn));
    }
    timed.sort_by_key(|(time, _)| *time);
    timed.into_iter().map(|(_, turn)| turn).collect()
}

/// Cuts a list into batches. The cuts depend on the beginning only: what is appended later leaves full batches as they are.
fn batches(turns: Vec<Located<NewTurn>>) -> Vec<Vec<Located<NewTurn>>> {
    let mut batches = Vec::<Vec<Located<NewTurn>>>::new();
    let mut bytes = 0;
    for turn in turns {
        let size = turn.value.content.text.len();
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

    fn turn(text: &str, time: Option<&str>) -> Located<NewTurn> {
        let turn = NewTurn {
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
        };
        Located::new(format!("message {text}"), turn)
    }

    #[test]
    fn turns_that_a_node_refuses_are_taken_out_and_named_by_their_message() {
        let mut turns = ["a", "b", "c"].map(|text| turn(text, None)).to_vec();
        let fault = Fault::invalid("turns[1].external_id", "is the same as that of turns[0]");
        let named = refused(&fault, &mut turns).unwrap();
        let problem = "external_id is the same as that of turns[0]".to_owned();
        assert_eq!(named, [Located::new("message b", problem)]);
        assert_eq!(turns.len(), 2);
        for fault in [
            Fault::invalid("space", "must not be empty"),
            Fault::invalid("turns[7].speaker", "must not be empty"),
            Fault::internal("turns[1]"),
        ] {
            assert_eq!(refused(&fault, &mut turns), None);
            assert_eq!(turns.len(), 2);
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
            .map(|turn| turn.value.content.text)
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
            tally.add(turns.to_vec(), &Messages::new(), known);
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
            ..Imported::default()
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
                let bytes = batch.iter().map(|turn| turn.value.content.text.len()).sum::<usize>();
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
