//! What becomes of the turns of some batches of a space, decided in memory: nothing here asks the database.

use std::collections::{BTreeMap, HashMap};

use memfleet_columns::{
    Before, LackingVectors, Receipts, VectorSlot, Verdict, embedding_key, stored,
};
use memfleet_domain::ids::{BatchId, SessionId, TurnId};
use memfleet_domain::ingestion::TurnReceipt;
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::{AcceptedTurn, ContentHash, Replacement};
use memfleet_ports::ledger::{BatchStatus, Committed, IndexedBatch, Passage};

use super::session::OpenSession;
use crate::scope::SpaceRow;

/// The space, and what is to be written to it.
#[derive(Debug)]
pub struct Plan<'b> {
    pub space: SpaceRow,
    pub language: Option<&'b str>,
    /// The highest position of acceptance of its batches.
    pub accepted: i64,
    pub named_at: Timestamp,
    pub sessions: HashMap<SessionId, OpenSession>,
    /// Sessions that begin here, in their order.
    pub begun: Vec<&'b SessionId>,
    pub turns: Vec<NewTurn<'b>>,
    /// Turns of the database that were replaced, with their change.
    pub ended: BTreeMap<TurnId, (i64, Replacement)>,
    /// Turns that had been forgotten.
    pub revived: Vec<TurnId>,
    /// What is known of batches, …
    statuses: HashMap<BatchId, BatchStatus>,
    /// … and what is new of that.
    pub settled: BTreeMap<BatchId, BatchStatus>,
    before: Before,
    /// Turns that are replaced here, and all newer versions of them.
    versions: HashMap<TurnId, Version>,
    /// Where the new turns are.
    indices: HashMap<TurnId, usize>,
    /// Places that new turns have no vectors in.
    pub lacking: LackingVectors,
}

/// A turn among the versions of what was said.
#[derive(Debug)]
pub struct Version {
    /// Acceptance and ordinal.
    pub place: (i64, u32),
    pub recorded_at: Timestamp,
    /// Turn that replaced it, which may be forgotten by now.
    pub next: Option<TurnId>,
}

/// A turn to be stored.
#[derive(Debug)]
pub struct NewTurn<'b> {
    pub turn: &'b AcceptedTurn,
    pub hash: ContentHash,
    pub replaces: Option<TurnId>,
    pub replaced: Option<Replacement>,
    pub acceptance: i64,
    pub ordinal: u32,
    pub change: i64,
    pub first_passage: u32,
    pub passages: &'b [Passage],
    /// Absent while a passage has no vectors.
    pub embedding: Option<i64>,
    /// The place of its vectors.
    pub slot: Option<VectorSlot>,
}

impl<'b> Plan<'b> {
    pub fn new(
        space: SpaceRow,
        before: Before,
        statuses: HashMap<BatchId, BatchStatus>,
        sessions: HashMap<SessionId, OpenSession>,
        versions: HashMap<TurnId, Version>,
    ) -> Self {
        Self {
            space,
            language: None,
            accepted: 0,
            named_at: Timestamp::UNIX_EPOCH,
            sessions,
            begun: Vec::new(),
            turns: Vec::new(),
            ended: BTreeMap::new(),
            revived: Vec::new(),
            statuses,
            settled: BTreeMap::new(),
            before,
            versions,
            indices: HashMap::new(),
            lacking: LackingVectors::since(space.head),
        }
    }

    /// Decides about the turns of one more batch.
    pub fn add(&mut self, batch: &'b IndexedBatch) -> Committed {
        self.accepted = self.accepted.max(batch.acceptance as i64);
        let head = self.space.head;
        let known = self.statuses.get(&batch.batch.id).cloned();
        let mut status = known.clone().unwrap_or_else(|| BatchStatus {
            change: head as u64,
            payload_hash: Some(batch.batch.payload_hash().0),
            turns: Vec::new(),
        });
        let mut receipts = Receipts::of(std::mem::take(&mut status.turns));
        for (turn, passages) in batch.batch.turns.iter().zip(&batch.passages) {
            let (ordinal, settled) = receipts.open(turn.id);
            let receipt =
                settled.unwrap_or_else(|| self.judge(batch, turn, passages, ordinal as u32));
            receipts.give(ordinal, receipt);
        }
        let (all, given) = receipts.close();
        status.turns = all;
        if known.is_none() || self.space.head != head {
            status.change = self.space.head as u64;
        }
        self.language = self.language.or(batch.language.as_deref());
        let change = status.change;
        if known.as_ref() != Some(&status) {
            self.statuses.insert(batch.batch.id, status.clone());
            self.settled.insert(batch.batch.id, status);
        }
        Committed {
            change,
            turns: given,
        }
    }

    fn judge(
        &mut self,
        batch: &IndexedBatch,
        turn: &'b AcceptedTurn,
        passages: &'b [Passage],
        ordinal: u32,
    ) -> TurnReceipt {
        let acceptance = batch.acceptance as i64;
        let (hash, replaces) = match self.before.judge(turn, acceptance) {
            Verdict::Settled(receipt) => return receipt,
            Verdict::New { hash, replaces } => (hash, replaces),
        };
        let place = (acceptance, ordinal);
        let replaced = replaces.and_then(|old| self.end(old, turn, place));
        let version = Version {
            place,
            recorded_at: turn.recorded_at,
            next: replaced.map(|replaced| replaced.by),
        };
        self.versions.insert(turn.id, version);
        if !self.sessions.contains_key(&turn.session) {
            self.sessions
                .insert(turn.session.clone(), OpenSession::begin(turn));
            self.begun.push(&turn.session);
        }
        let session = self.sessions.get_mut(&turn.session);
        session
            .expect("was just opened")
            .add(turn, acceptance, ordinal);
        if self.before.stored(turn.id, hash) {
            self.revived.push(turn.id);
        }
        let embedding = batch.embedding_space.as_ref().map(embedding_key);
        let slot = embedding.and_then(|embedding| self.space.slots.place(embedding));
        let is_embedded = passages.iter().all(|passage| passage.vectors.is_some());
        let given = slot.filter(|_| is_embedded);
        self.lacking.note(self.space.slots, given);
        let change = self.next_change();
        self.indices.insert(turn.id, self.turns.len());
        self.turns.push(NewTurn {
            turn,
            hash,
            replaces,
            replaced,
            acceptance,
            ordinal,
            change,
            first_passage: self.space.next_passage,
            passages,
            embedding: embedding.filter(|_| given.is_some()),
            slot,
        });
        self.space.next_passage += passages.len() as u32;
        stored(turn.id)
    }

    /// Puts `by` among the versions of the turn that it replaces, in the order of acceptance: the one before it ends, and what
    /// was accepted later and is there already replaces it. Where what replaced the one before is forgotten, that one stays as
    /// it is.
    fn end(&mut self, old: TurnId, by: &AcceptedTurn, place: (i64, u32)) -> Option<Replacement> {
        let mut before = old;
        let mut next = self.versions.get(&old)?.next;
        let mut follower = None;
        while let Some(id) = next {
            let version = self.versions.get(&id)?;
            if version.place > place {
                let at = version.recorded_at;
                follower = Some(Replacement { by: id, at });
                break;
            }
            (before, next) = (id, version.next);
        }
        let change = self.next_change();
        let replacement = Replacement {
            by: by.id,
            at: by.recorded_at,
        };
        self.versions.get_mut(&before)?.next = Some(by.id);
        match self.indices.get(&before) {
            None => {
                self.ended.insert(before, (change, replacement));
            }
            Some(index) => {
                let new = &mut self.turns[*index];
                (new.replaced, new.change) = (Some(replacement), change);
            }
        }
        follower
    }

    /// The next change sequence of the space.
    fn next_change(&mut self) -> i64 {
        self.space.head += 1;
        self.space.head
    }
}
