//! The semantic graph (Amory section 3.2, semanticization): what facts say, as triplets between entities. It holds what memory knows now; what held when
//! is the validity interval of each triplet.

use serde::{Deserialize, Serialize};

use crate::ids::{DerivationId, EntityId, TurnId};
use crate::time::{TimeRange, Timestamp};

/// Somebody or something that facts are about: all that has one key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entity {
    /// That of its key.
    pub id: EntityId,
    /// What names are compared by: case folded, articles gone. Entities are listed in its order.
    pub key: String,
    /// As a reader is shown it.
    pub name: String,
}

impl Entity {
    /// The entity of a key, under a name.
    pub fn new(key: &str, name: &str) -> Self {
        Self {
            id: EntityId::of_key(key),
            key: key.to_owned(),
            name: name.to_owned(),
        }
    }
}

/// What a caller says of two names: that they are of one entity, or that they are not. Both draw on a turn that names them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The name that it goes by.
    pub entity: Entity,
    /// The other one.
    pub other: Entity,
    /// Whether they are one.
    pub same: bool,
}

impl Identity {
    /// What such a triplet says.
    pub const PREDICATE: &str = "same as";
}

/// What a fact says of two entities.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Triplet {
    /// Its provenance. A fact says at most one thing of an object.
    pub fact: DerivationId,
    /// Of whom it is said.
    pub subject: EntityId,
    /// What: a known attribute (`residence`, `employer`, …), else the verb.
    pub predicate: String,
    /// Of what else.
    pub object: EntityId,
    /// Whether it denies it.
    pub negated: bool,
    /// When it holds.
    pub valid: TimeRange,
    /// How sure the extractor is, 0 to 1.
    pub confidence: f32,
    /// The turns that it comes from.
    pub turns: Vec<TurnId>,
}

impl Triplet {
    /// Whether it holds at an instant.
    pub fn holds_at(&self, instant: Timestamp) -> bool {
        self.valid.start.is_none_or(|start| start <= instant)
            && self.valid.end.is_none_or(|end| instant < end)
    }

    /// The end that is not this one; a triplet of an entity with itself leads back to it.
    pub fn other(&self, end: EntityId) -> EntityId {
        if self.subject == end {
            self.object
        } else {
            self.subject
        }
    }
}
