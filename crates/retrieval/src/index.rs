//! One space in memory, as search needs it: postings, sentence vectors and attributes, no text. Built from the changes of
//! the ledger and kept current by them.
//!
//! A *row* is a passage's place here, in the order in which the store numbered them. What is forgotten leaves its postings and
//! counts at once and its row at the next compaction. Rows of one session are linked in the session's order, whatever order they arrived in.

pub(crate) mod bits;
mod compaction;
mod derivations;
mod eligibility;
mod names;
mod passages;
mod ragged;
mod sentences;
mod sessions;
mod terms;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use memfleet_domain::derivation::Kind;
use memfleet_domain::ids::{DerivationId, TurnId};
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::Role;
use memfleet_ports::feed::{Change, Changes, IndexedDerivation, IndexedTurn, Order};

pub use eligibility::Eligible;

use bits::Bits;
pub(crate) use derivations::Derivations;
use names::Names;
pub(crate) use passages::{Passages, features};
use sessions::Sessions;
pub(crate) use terms::Postings;

/// No row.
pub(crate) const NONE: u32 = u32::MAX;

/// A compact index of one space.
#[derive(Debug, Default)]
pub struct SpaceIndex {
    reached: u64,
    turns: Vec<Option<TurnEntry>>,
    free_turns: Vec<u32>,
    by_id: HashMap<TurnId, u32>,
    speakers: Names,
    session_names: Names,
    sessions: Sessions,
    passages: Passages,
    /// Rows that default retrieval may find: alive and not replaced.
    current: Bits,
    /// Whether a row came after one of a higher number: so it is where a turn changed after later ones were stored.
    is_unordered: bool,
    /// Turns that another replaces.
    replaced: usize,
    /// By the store's number of a passage: its row, or [`NONE`].
    rows: Vec<u32>,
    facts: Derivations,
    episodes: Derivations,
    fragments: Derivations,
}

/// A turn without its text.
#[derive(Debug, Clone)]
pub(crate) struct TurnEntry {
    pub(crate) id: TurnId,
    pub(crate) session: u32,
    pub(crate) order: Order,
    pub(crate) speaker: u32,
    pub(crate) role: Role,
    pub(crate) event_time: Option<Timestamp>,
    pub(crate) recorded_at: Timestamp,
    pub(crate) replaced_at: Option<Timestamp>,
    /// The store's number of its first passage.
    pub(crate) first_passage: u32,
    pub(crate) first_row: u32,
    pub(crate) rows: u32,
}

impl TurnEntry {
    /// Its rows.
    pub(crate) fn rows(&self) -> std::ops::Range<u32> {
        self.first_row..self.first_row + self.rows
    }

    /// Event time where it is known, else recorded time.
    pub(crate) fn effective_time(&self) -> Timestamp {
        self.event_time.unwrap_or(self.recorded_at)
    }
}

impl SpaceIndex {
    /// An empty index, before the space's first change.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a page of the feed; afterwards [`Self::reached`] is the page's.
    pub fn advance(&mut self, changes: Changes) {
        for change in changes.changes {
            self.apply(change);
        }
        if self.is_unordered && !changes.more {
            self.compact();
        }
        self.reached = changes.reached;
    }

    /// Takes one change. Applying a change twice is the same as once.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Stored(turn) => self.store(&turn),
            Change::Forgotten(id) => self.forget(id),
            Change::Derived(derived) => self.derive(&derived),
            Change::Withdrawn(id) => self.withdraw(id),
        }
    }

    /// Takes a fact or an episode in its present state. Its turns may come later.
    pub fn derive(&mut self, derived: &IndexedDerivation) {
        match derived.kind {
            Kind::Fact => self.facts.put(derived),
            Kind::Episode => self.episodes.put(derived),
            Kind::Fragment => self.fragments.put(derived),
            // Nothing is found through a narrative but through its fragments, nor through what is said of two names.
            Kind::Narrative | Kind::Identity => {}
        }
    }

    /// Lets go of a fact or an episode.
    pub fn withdraw(&mut self, id: DerivationId) {
        self.facts.remove(id);
        self.episodes.remove(id);
        self.fragments.remove(id);
    }

    /// The change sequence up to which this index knows the space.
    pub fn reached(&self) -> u64 {
        self.reached
    }

    /// Turns it holds, replaced ones included.
    pub fn turns(&self) -> usize {
        self.by_id.len()
    }

    /// Passages it holds.
    pub fn passages_held(&self) -> usize {
        self.passages.alive()
    }

    /// Turns with a passage that has no vectors yet.
    pub fn without_vectors(&self) -> impl Iterator<Item = TurnId> {
        let missing = |entry: &&TurnEntry| {
            let mut rows = entry.rows();
            rows.any(|row| !self.passages.sentences.has(row))
        };
        let is_whole = self.passages.sentences.count() == self.passages.alive();
        let turns = if is_whole { &[][..] } else { &self.turns };
        let turns = turns.iter().flatten().filter(missing);
        turns.map(|entry| entry.id)
    }

    /// Bytes of memory, for a cache that evicts by size.
    pub fn bytes(&self) -> usize {
        let id = size_of::<(TurnId, u32)>() + 1;
        size_of::<Self>()
            + self.turns.capacity() * size_of::<Option<TurnEntry>>()
            + self.free_turns.capacity() * 4
            + self.by_id.capacity() * id * 8 / 7
            + self.speakers.bytes()
            + self.session_names.bytes()
            + self.sessions.bytes()
            + self.passages.bytes()
            + self.current.bytes()
            + self.rows.capacity() * 4
            + self.facts.bytes()
            + self.episodes.bytes()
            + self.fragments.bytes()
    }

    /// Up to `reach` turns before and after a turn in its session, oldest first, itself left out; only those that `eligible`
    /// lets through. Empty for an unknown turn.
    pub fn neighbours(&self, turn: TurnId, reach: usize, eligible: &Eligible) -> Vec<TurnId> {
        let Some(&slot) = self.by_id.get(&turn) else {
            return Vec::new();
        };
        let entry = self.turn(slot);
        let session = self.sessions.turns(entry.session);
        let Ok(at) = session.binary_search_by_key(&entry.order, |&other| self.turn(other).order)
        else {
            return Vec::new();
        };
        let visible = |&slot: &u32| eligible.contains(self.turn(slot).first_row);
        let id = |slot: u32| self.turn(slot).id;
        let before = session[..at]
            .iter()
            .rev()
            .copied()
            .filter(visible)
            .take(reach)
            .map(id);
        let after = session[at + 1..]
            .iter()
            .copied()
            .filter(visible)
            .take(reach)
            .map(id);
        let mut out: Vec<TurnId> = before.collect();
        out.reverse();
        out.extend(after);
        out
    }

    pub(crate) fn turn(&self, slot: u32) -> &TurnEntry {
        self.turns[slot as usize]
            .as_ref()
            .expect("rows and sessions name turns that are there")
    }

    /// The store's number of a row.
    pub(crate) fn passage_number(&self, row: u32) -> u32 {
        let turn = self.turn(self.passages.turn(row));
        turn.first_passage + (row - turn.first_row)
    }

    /// The row of the store's number of a passage.
    pub(crate) fn row(&self, passage: u32) -> Option<u32> {
        let row = self.rows.get(passage as usize).copied();
        row.filter(|&row| row != NONE)
    }

    /// The rows that are there, ascending.
    pub(crate) fn all_rows(&self) -> impl Iterator<Item = u32> {
        self.passages.alive_rows()
    }

    /// Says where the passages of a turn are from now on.
    fn place_passages(&mut self, entry: &TurnEntry, is_there: bool) {
        let numbers = entry.first_passage as usize..(entry.first_passage + entry.rows) as usize;
        if self.rows.len() < numbers.end {
            self.rows.resize(numbers.end, NONE);
        }
        for (slot, row) in self.rows[numbers].iter_mut().zip(entry.rows()) {
            *slot = if is_there { row } else { NONE };
        }
    }

    /// Sessions with a turn.
    pub(crate) fn sessions(&self) -> usize {
        self.session_names.len()
    }

    /// One more than the highest number of a session.
    pub(crate) fn session_slots(&self) -> usize {
        self.sessions.slots()
    }

    /// Terms of a session, with repeats.
    pub(crate) fn session_length(&self, session: u32) -> u32 {
        self.sessions.length(session)
    }

    pub(crate) fn passages(&self) -> &Passages {
        &self.passages
    }

    pub(crate) fn facts(&self) -> &Derivations {
        &self.facts
    }

    pub(crate) fn fragments(&self) -> &Derivations {
        &self.fragments
    }

    pub(crate) fn episodes(&self) -> &Derivations {
        &self.episodes
    }

    /// The turn with this id, if it is there.
    pub(crate) fn turn_named(&self, id: TurnId) -> Option<&TurnEntry> {
        self.by_id.get(&id).map(|&slot| self.turn(slot))
    }

    /// The speakers of the space.
    pub(crate) fn speakers(&self) -> impl Iterator<Item = &str> {
        self.speakers.iter().map(|(_, name)| name)
    }

    pub(crate) fn speaker_name(&self, turn: &TurnEntry) -> &str {
        self.speakers.name(turn.speaker)
    }

    /// How many different speakers the turn's session has.
    pub(crate) fn speakers_in_session_of(&self, turn: &TurnEntry) -> usize {
        self.sessions.speakers(turn.session)
    }

    fn store(&mut self, turn: &IndexedTurn) {
        if let Some(&slot) = self.by_id.get(&turn.id) {
            if self.update(slot, turn) {
                return;
            }
            self.forget(turn.id);
        }
        if !turn.passages.is_empty() {
            self.insert(turn);
        }
    }

    /// Takes over what may change in a stored turn; false when it is another turn under the same id.
    fn update(&mut self, slot: u32, turn: &IndexedTurn) -> bool {
        let entry = self.turn(slot).clone();
        let same = entry.rows as usize == turn.passages.len()
            && entry.first_passage == turn.first_passage
            && entry.order == turn.order
            && self.session_names.name(entry.session) == turn.session.as_str()
            && self.speakers.name(entry.speaker) == turn.speaker.as_str();
        if !same {
            return false;
        }
        for (row, passage) in entry.rows().zip(&turn.passages) {
            self.passages.update(row, passage);
            self.current.set(row, turn.replaced_at.is_none());
        }
        self.replaced -= usize::from(entry.replaced_at.is_some());
        self.replaced += usize::from(turn.replaced_at.is_some());
        self.turns[slot as usize] = Some(TurnEntry {
            role: turn.role,
            event_time: turn.event_time,
            recorded_at: turn.recorded_at,
            replaced_at: turn.replaced_at,
            ..entry
        });
        true
    }

    fn insert(&mut self, turn: &IndexedTurn) {
        let slot = self.free_turns.pop().unwrap_or_else(|| {
            self.turns.push(None);
            self.turns.len() as u32 - 1
        });
        let session = self.session_names.acquire(turn.session.as_str());
        let first_row = self.passages.push(slot, session, &turn.passages);
        let entry = TurnEntry {
            id: turn.id,
            session,
            order: turn.order,
            speaker: self.speakers.acquire(turn.speaker.as_str()),
            role: turn.role,
            event_time: turn.event_time,
            recorded_at: turn.recorded_at,
            replaced_at: turn.replaced_at,
            first_passage: turn.first_passage,
            first_row,
            rows: turn.passages.len() as u32,
        };
        self.by_id.insert(turn.id, slot);
        self.replaced += usize::from(turn.replaced_at.is_some());
        for row in entry.rows() {
            self.current.set(row, turn.replaced_at.is_none());
        }
        self.is_unordered |= (entry.first_passage as usize) < self.rows.len();
        self.place_passages(&entry, true);
        let speaker = entry.speaker;
        self.turns[slot as usize] = Some(entry);
        let at = self.place(session, turn.order);
        let (before, after) = self.rows_around(session, at, at);
        let rows = self.turn(slot).rows();
        self.passages.link(before, rows.start);
        self.passages.link(rows.end - 1, after);
        let length = self.length(rows);
        self.sessions.insert(session, at, slot, speaker, length);
    }

    fn forget(&mut self, id: TurnId) {
        self.facts.forget(id);
        self.episodes.forget(id);
        self.fragments.forget(id);
        let Some(slot) = self.by_id.remove(&id) else {
            return;
        };
        let entry = self.turns[slot as usize]
            .take()
            .expect("an id names a turn that is there");
        self.replaced -= usize::from(entry.replaced_at.is_some());
        let at = self.place(entry.session, entry.order);
        let (before, after) = self.rows_around(entry.session, at, at + 1);
        self.passages.link(before, after);
        let length = self.length(entry.rows());
        self.sessions
            .remove(entry.session, at, entry.speaker, length);
        self.session_names.release(entry.session);
        self.speakers.release(entry.speaker);
        for row in entry.rows() {
            self.passages.remove(row);
            self.current.set(row, false);
        }
        self.place_passages(&entry, false);
        self.free_turns.push(slot);
        self.compact_if_sparse();
    }

    /// Terms of some rows, with repeats.
    fn length(&self, rows: std::ops::Range<u32>) -> u32 {
        rows.map(|row| self.passages.length(row)).sum()
    }

    /// Where a turn of this order stands, or would stand, in its session.
    fn place(&self, session: u32, order: Order) -> usize {
        let before = |&slot: &u32| {
            self.turns[slot as usize]
                .as_ref()
                .is_some_and(|other| other.order < order)
        };
        self.sessions.turns(session).partition_point(before)
    }

    /// Last row of the turn before place `start` and first row of the turn at place `end` of a session.
    fn rows_around(&self, session: u32, start: usize, end: usize) -> (u32, u32) {
        let turns = self.sessions.turns(session);
        let before = start
            .checked_sub(1)
            .map_or(NONE, |at| self.turn(turns[at]).rows().end - 1);
        let after = turns
            .get(end)
            .map_or(NONE, |&slot| self.turn(slot).first_row);
        (before, after)
    }
}
