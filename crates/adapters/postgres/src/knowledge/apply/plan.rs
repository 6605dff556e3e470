//! What some changes write, decided in memory: nothing here asks the database.

use std::collections::{BTreeMap, HashMap, HashSet};

use memfleet_columns::{LackingVectors, VectorSlot, VectorSlots, embedding_key, rest_on};
use memfleet_domain::derivation::{Change, Derivation};
use memfleet_domain::ids::{ChangeId, DerivationId};
use memfleet_ports::knowledge::{Revision, Rewrite};
use memfleet_ports::ledger::Passage;

use crate::passages::NewPassage;
use crate::scope::SpaceRow;

/// The version of a derivation that a new one would follow.
#[derive(Debug, Clone, Copy)]
pub struct Current {
    pub version: u32,
    /// With which change sequence its first version came.
    pub first: i64,
    pub passage: u32,
    /// Where it is in the plan; absent where it is in the database.
    pub place: Option<usize>,
}

/// A version to be written.
#[derive(Debug)]
pub struct NewVersion<'w> {
    pub derivation: &'w Derivation,
    pub first: i64,
    pub change: i64,
    pub known_from: i64,
    /// Where a later one of the same work follows.
    pub known_until: Option<i64>,
    pub passage: u32,
}

/// The space's counters, and what is to be written.
#[derive(Debug)]
pub struct Plan<'w> {
    head: i64,
    pub next_passage: u32,
    pub changes: Vec<&'w Change>,
    pub versions: Vec<NewVersion<'w>>,
    pub passages: Vec<NewPassage<'w>>,
    slots: VectorSlots,
    /// Places that new passages have no vectors in.
    pub lacking: LackingVectors,
    /// Derivations whose version in the database ends, and when.
    pub ended: BTreeMap<DerivationId, i64>,
    current: HashMap<DerivationId, Current>,
    made: HashSet<ChangeId>,
}

impl<'w> Plan<'w> {
    pub fn new(space: SpaceRow, current: HashMap<DerivationId, Current>) -> Self {
        Self {
            head: space.head,
            next_passage: space.next_passage,
            changes: Vec::new(),
            versions: Vec::new(),
            passages: Vec::new(),
            slots: space.slots,
            lacking: LackingVectors::since(space.head),
            ended: BTreeMap::new(),
            current,
            made: HashSet::new(),
        }
    }

    /// Adds what one change writes; false where it rests on what is no longer so.
    pub fn add(&mut self, rewrite: &'w Rewrite) -> bool {
        if !self.made.insert(rewrite.change.id) {
            return true;
        }
        let ids = rewrite.revisions.iter().map(|new| new.derivation.id);
        let versions = ids.filter_map(|id| Some((id, self.current.get(&id)?.version)));
        if !rest_on(&rewrite.revisions, &versions.collect::<HashMap<_, _>>()) {
            return false;
        }
        self.changes.push(&rewrite.change);
        for revision in &rewrite.revisions {
            self.revise(revision, rewrite.change.at.timestamp_micros());
        }
        true
    }

    /// Adds what a rebuild had put aside: first versions, whose passages are there.
    pub fn publish(&mut self, change: &'w Change, staged: &'w [(Derivation, u32)]) {
        if !staged.is_empty() {
            self.changes.push(change);
            // A staged fact may be older than the place that is filled now.
            self.lacking.note(self.slots, None);
        }
        for (derivation, passage) in staged {
            self.head += 1;
            self.versions.push(NewVersion {
                derivation,
                first: self.head,
                change: self.head,
                known_from: change.at.timestamp_micros(),
                known_until: None,
                passage: *passage,
            });
        }
    }

    /// Adds a history that nothing is known of: each version with its change, known as long as the
    /// version says.
    pub fn restore(&mut self, history: &'w [(&'w Change, Revision)]) {
        for (change, revision) in history {
            if self.made.insert(change.id) {
                self.changes.push(change);
            }
            let at = revision.derivation.known.start.unwrap_or(change.at);
            self.revise(revision, at.timestamp_micros());
        }
        for new in &mut self.versions {
            let ended = new.derivation.known.end.map(|end| end.timestamp_micros());
            new.known_until = ended.map(|end| end.max(new.known_from));
        }
    }

    fn revise(&mut self, revision: &'w Revision, at: i64) {
        let derivation = &revision.derivation;
        self.head += 1;
        let before = self.current.get(&derivation.id).copied();
        match before.map(|before| before.place) {
            None => {}
            Some(None) => _ = self.ended.insert(derivation.id, at),
            Some(Some(place)) => {
                let before = &mut self.versions[place];
                before.known_until = Some(at.max(before.known_from));
            }
        }
        let passage = match (&revision.passage, before) {
            (None, Some(before)) => before.passage,
            (Some(passage), _) => self.number(passage),
            (None, None) => unreachable!("a first version has something to be found by"),
        };
        let new = Current {
            version: derivation.version,
            first: before.map_or(self.head, |before| before.first),
            passage,
            place: Some(self.versions.len()),
        };
        self.current.insert(derivation.id, new);
        self.versions.push(NewVersion {
            derivation,
            first: new.first,
            change: self.head,
            known_from: at,
            known_until: None,
            passage,
        });
    }

    fn number(&mut self, passage: &'w Passage) -> u32 {
        let number = self.next_passage;
        self.next_passage += 1;
        let slot = slot(self.slots, passage);
        let given = slot.filter(|_| passage.vectors.is_some());
        self.lacking.note(self.slots, given);
        self.passages.push((number, passage, slot));
        number
    }
}

/// The place of the vectors of a passage that is derived.
pub fn slot(slots: VectorSlots, passage: &Passage) -> Option<VectorSlot> {
    passage.vectors.as_ref()?;
    match &passage.embedding_space {
        Some(space) => slots.of(embedding_key(space)),
        None => slots.served(),
    }
}
