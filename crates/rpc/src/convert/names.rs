//! Names of entities: which are one.

use memfleet_domain::derivation::{Body, Derivation, Origin};
use memfleet_domain::graph::Identity;
use memfleet_domain::ids::{ChangeId, SpaceId};
use memfleet_ports::knowledge_api::{
    EntityName, MergeRequest, Merged, NamedEntity, Split, SplitRequest,
};
use memfleet_ports::refresher::Naming;

use super::{Checked, Fields};
use crate::{limits, proto};

fn texts(ids: &[impl ToString]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

fn text(change: Option<ChangeId>) -> String {
    change.map(|id| id.to_string()).unwrap_or_default()
}

impl Checked for proto::Identity {
    type Value = Derivation;

    fn check(self, fields: &mut Fields) -> Option<Derivation> {
        let id = fields.id("id", &self.id, "the id of what was said of two names");
        let entity = fields.message("entity", self.entity);
        let other = fields.message("other", self.other);
        let turns = fields.turn_ids("turn_ids", self.turn_ids, usize::MAX);
        let turns = fields.some("turn_ids", turns);
        let valid = fields.interval("valid", self.valid);
        let known = fields.interval("known", self.known);
        let change = fields.id("change_id", &self.change_id, "the id of a change");
        let identity = Identity {
            entity: entity?,
            other: other?,
            same: self.same,
        };
        Some(Derivation {
            id: id?,
            version: self.version,
            body: Body::Identity(Box::new(identity)),
            turns: turns?,
            valid: valid?,
            known: known?,
            origin: Origin::Corrected,
            change: change?,
            succeeded_by: None,
        })
    }
}

impl From<NamedEntity> for proto::GetEntityResponse {
    fn from(found: NamedEntity) -> Self {
        Self {
            entity: Some(found.entity.into()),
            names: found.names.into_iter().map(Into::into).collect(),
        }
    }
}

impl Checked for proto::GetEntityResponse {
    type Value = NamedEntity;

    fn check(self, fields: &mut Fields) -> Option<NamedEntity> {
        let entity = fields.message("entity", self.entity);
        let names = fields.messages("names", self.names, usize::MAX);
        Some(NamedEntity {
            entity: entity?,
            names: names?,
        })
    }
}

impl From<EntityName> for proto::EntityName {
    fn from(name: EntityName) -> Self {
        Self {
            entity: Some(name.entity.into()),
            memory_ids: texts(&name.because),
        }
    }
}

impl Checked for proto::EntityName {
    type Value = EntityName;

    fn check(self, fields: &mut Fields) -> Option<EntityName> {
        let entity = fields.message("entity", self.entity);
        let because = fields.each("memory_ids", self.memory_ids, usize::MAX, |fields, id| {
            fields.id("", &id, "the id of a memory")
        });
        Some(EntityName {
            entity: entity?,
            because: because?,
        })
    }
}

impl From<MergeRequest> for proto::MergeEntitiesRequest {
    fn from(request: MergeRequest) -> Self {
        Self {
            space: request.space.into(),
            entity: request.entity,
            other: request.other,
        }
    }
}

impl Checked for proto::MergeEntitiesRequest {
    type Value = MergeRequest;

    fn check(self, fields: &mut Fields) -> Option<MergeRequest> {
        let space = fields.name("space", self.space, SpaceId::new);
        let entity = fields.words("entity", self.entity, limits::SUBJECT);
        let other = fields.words("other", self.other, limits::SUBJECT);
        Some(MergeRequest {
            space: space?,
            entity: entity?,
            other: other?,
        })
    }
}

impl From<Merged> for proto::MergeEntitiesResponse {
    fn from(merged: Merged) -> Self {
        Self {
            merged: Some(merged.entity.into()),
            change_id: text(merged.change),
        }
    }
}

impl Checked for proto::MergeEntitiesResponse {
    type Value = Merged;

    fn check(self, fields: &mut Fields) -> Option<Merged> {
        let entity = fields.message("merged", self.merged);
        let change = fields.optional_id("change_id", &self.change_id, "the id of a change");
        Some(Merged {
            entity: entity?,
            change: change?,
        })
    }
}

impl From<SplitRequest> for proto::SplitEntityRequest {
    fn from(request: SplitRequest) -> Self {
        Self {
            space: request.space.into(),
            entity: request.entity,
        }
    }
}

impl Checked for proto::SplitEntityRequest {
    type Value = SplitRequest;

    fn check(self, fields: &mut Fields) -> Option<SplitRequest> {
        let space = fields.name("space", self.space, SpaceId::new);
        let entity = fields.words("entity", self.entity, limits::SUBJECT);
        Some(SplitRequest {
            space: space?,
            entity: entity?,
        })
    }
}

impl From<Split> for proto::SplitEntityResponse {
    fn from(split: Split) -> Self {
        Self {
            entity: Some(split.entity.into()),
            parted: split.parted.into_iter().map(Into::into).collect(),
            change_id: text(split.change),
        }
    }
}

impl Checked for proto::SplitEntityResponse {
    type Value = Split;

    fn check(self, fields: &mut Fields) -> Option<Split> {
        let entity = fields.message("entity", self.entity);
        let parted = fields.messages("parted", self.parted, usize::MAX);
        let change = fields.optional_id("change_id", &self.change_id, "the id of a change");
        Some(Split {
            entity: entity?,
            parted: parted?,
            change: change?,
        })
    }
}

impl From<Naming> for proto::internal::Naming {
    fn from(naming: Naming) -> Self {
        let identity = naming.identity;
        Self {
            entity: Some(identity.entity.into()),
            other: Some(identity.other.into()),
            same: identity.same,
            turn_ids: texts(&naming.turns),
        }
    }
}

impl Checked for proto::internal::Naming {
    type Value = Naming;

    fn check(self, fields: &mut Fields) -> Option<Naming> {
        let entity = fields.message("entity", self.entity);
        let other = fields.message("other", self.other);
        let turns = fields.turn_ids("turn_ids", self.turn_ids, limits::NAMINGS);
        let turns = fields.some("turn_ids", turns);
        Some(Naming {
            identity: Identity {
                entity: entity?,
                other: other?,
                same: self.same,
            },
            turns: turns?,
        })
    }
}

impl Checked for proto::internal::IdentifyRequest {
    type Value = (SpaceId, Vec<Naming>);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let space = fields.name("space", self.space, SpaceId::new);
        let namings = fields.messages("namings", self.namings, limits::NAMINGS);
        let namings = fields.some("namings", namings);
        Some((space?, namings?))
    }
}

impl From<ChangeId> for proto::internal::IdentifyResponse {
    fn from(change: ChangeId) -> Self {
        Self {
            change_id: change.to_string(),
        }
    }
}

impl Checked for proto::internal::IdentifyResponse {
    type Value = ChangeId;

    fn check(self, fields: &mut Fields) -> Option<ChangeId> {
        fields.id("change_id", &self.change_id, "the id of a change")
    }
}
