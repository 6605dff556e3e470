//! The facts, or the episodes, of a space: what they are found by, and which turns they stand for. They come later than their
//! turns, in any order, and go with the first of them.

use std::collections::HashMap;

use memfleet_domain::ids::{DerivationId, TurnId};
use memfleet_ports::feed::IndexedDerivation;

use super::{Names, Passages};

/// Dead rows below which compaction is not worth it.
const SPARE_ROWS: usize = 256;

/// Derivations of one kind.
#[derive(Debug, Default)]
pub(crate) struct Derivations {
    /// One row a derivation; their turns are slots here.
    passages: Passages,
    slots: Vec<Option<Derivation>>,
    free: Vec<u32>,
    by_id: HashMap<DerivationId, u32>,
    by_turn: HashMap<TurnId, Vec<u32>>,
    /// Keys of the entities that facts relate, and the slots of the facts of each.
    entities: Names,
    by_entity: Vec<Vec<u32>>,
}

/// A derivation without its text.
#[derive(Debug)]
pub(crate) struct Derivation {
    pub(crate) id: DerivationId,
    pub(crate) turns: Vec<TurnId>,
    /// The entities that it relates, as [`Derivations::entity`] numbers them.
    pub(crate) entities: Vec<u32>,
    /// The store's number of it.
    pub(crate) number: u32,
    pub(crate) row: u32,
}

impl Derivations {
    /// Takes a derivation in its present state.
    pub(crate) fn put(&mut self, derived: &IndexedDerivation) {
        self.remove(derived.id);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        let row = self
            .passages
            .push(slot, 0, std::slice::from_ref(&derived.passage));
        for &turn in &derived.turns {
            self.by_turn.entry(turn).or_default().push(slot);
        }
        let entities = derived.entities.iter();
        let entities: Vec<u32> = entities.map(|key| self.relate(key, slot)).collect();
        self.by_id.insert(derived.id, slot);
        self.slots[slot as usize] = Some(Derivation {
            id: derived.id,
            entities,
            turns: derived.turns.clone(),
            number: derived.number,
            row,
        });
    }

    /// Lets go of a derivation, if it is there.
    pub(crate) fn remove(&mut self, id: DerivationId) {
        let Some(slot) = self.by_id.remove(&id) else {
            return;
        };
        let gone = self.slots[slot as usize]
            .take()
            .expect("an id names a derivation that is there");
        for turn in gone.turns {
            if let Some(slots) = self.by_turn.get_mut(&turn) {
                slots.retain(|&other| other != slot);
                if slots.is_empty() {
                    self.by_turn.remove(&turn);
                }
            }
        }
        for entity in gone.entities {
            self.by_entity[entity as usize].retain(|&other| other != slot);
            self.entities.release(entity);
        }
        self.passages.remove(gone.row);
        self.free.push(slot);
        let (rows, alive) = (self.passages.rows(), self.passages.alive());
        if rows - alive > SPARE_ROWS && (rows - alive) * 3 > rows {
            self.compact();
        }
    }

    /// Lets go of whatever comes from a turn: its words may be in it.
    pub(crate) fn forget(&mut self, turn: TurnId) {
        let ids: Vec<DerivationId> = self.of(turn).map(|derivation| derivation.id).collect();
        ids.into_iter().for_each(|id| self.remove(id));
    }

    /// What comes from a turn.
    pub(crate) fn of(&self, turn: TurnId) -> impl Iterator<Item = &Derivation> {
        let slots = self.by_turn.get(&turn).into_iter().flatten();
        slots.map(|&slot| self.slot(slot))
    }

    /// The number of the entity with this key.
    pub(crate) fn entity(&self, key: &str) -> Option<u32> {
        self.entities.get(key)
    }

    /// The facts that relate an entity.
    pub(crate) fn relating(&self, entity: u32) -> impl ExactSizeIterator<Item = &Derivation> {
        let slots = self.by_entity[entity as usize].iter();
        slots.map(|&slot| self.slot(slot))
    }

    /// The derivation of a row.
    pub(crate) fn at(&self, row: u32) -> &Derivation {
        self.slot(self.passages.turn(row))
    }

    /// What they are found by.
    pub(crate) fn passages(&self) -> &Passages {
        &self.passages
    }

    /// Heap bytes.
    pub(crate) fn bytes(&self) -> usize {
        let turns: usize = self
            .slots
            .iter()
            .flatten()
            .map(|it| it.turns.capacity())
            .sum();
        let slots: usize = self.by_turn.values().map(Vec::capacity).sum();
        let relating: usize = self.by_entity.iter().map(Vec::capacity).sum();
        let related = self.slots.iter().flatten().map(|it| it.entities.capacity());
        let graph = self.entities.bytes()
            + (relating + related.sum::<usize>()) * 4
            + self.by_entity.capacity() * size_of::<Vec<u32>>();
        let keys = self.by_id.capacity() * size_of::<(DerivationId, u32)>()
            + self.by_turn.capacity() * size_of::<(TurnId, Vec<u32>)>();
        self.passages.bytes()
            + self.slots.capacity() * size_of::<Option<Derivation>>()
            + turns * size_of::<TurnId>()
            + (slots + self.free.capacity()) * 4
            + graph
            + keys * 8 / 7
    }

    /// Notes that a fact relates an entity: its number.
    fn relate(&mut self, key: &str, slot: u32) -> u32 {
        let entity = self.entities.acquire(key);
        if self.by_entity.len() <= entity as usize {
            self.by_entity.resize_with(entity as usize + 1, Vec::new);
        }
        self.by_entity[entity as usize].push(slot);
        entity
    }

    fn slot(&self, slot: u32) -> &Derivation {
        self.slots[slot as usize]
            .as_ref()
            .expect("rows and turns name derivations that are there")
    }

    fn compact(&mut self) {
        let renumbered = self.passages.compact_by(|row| row);
        for derivation in self.slots.iter_mut().flatten() {
            derivation.row = renumbered[derivation.row as usize];
        }
    }
}

#[cfg(test)]
mod tests;
