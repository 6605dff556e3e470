//! The semantic graph.

use memfleet_domain::graph::{Entity, Triplet};
use memfleet_domain::ids::SpaceId;
use memfleet_ports::knowledge_api::{
    Edge, EntityQuery, EntityRequest, Neighbourhood, Paths, PathsQuery,
};
use memfleet_ports::ledger::Page;
use memfleet_ports::memory::PageRequest;

use super::derivation::range;
use super::page::{page_token, parts};
use super::time::time;
use super::{Checked, Fields};
use crate::{limits, proto};

/// Paths of a request that does not say.
const PATHS: u32 = 10;

fn texts(ids: &[impl ToString]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

impl From<(EntityQuery, PageRequest)> for proto::ListEntitiesRequest {
    fn from((query, page): (EntityQuery, PageRequest)) -> Self {
        Self {
            space: query.space.into(),
            prefix: query.prefix,
            page_size: page.limit,
            page_token: page.after.map(|token| token.0).unwrap_or_default(),
            wait_for: texts(&query.wait_for),
        }
    }
}

impl Checked for proto::ListEntitiesRequest {
    type Value = (EntityQuery, PageRequest);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let space = fields.name("space", self.space, SpaceId::new);
        let prefix = fields.text("prefix", self.prefix, limits::SUBJECT);
        let page = fields.page(self.page_size, self.page_token);
        let wait_for = fields.wait_for(self.wait_for);
        let query = EntityQuery {
            space: space?,
            prefix: prefix?,
            wait_for: wait_for?,
        };
        Some((query, page?))
    }
}

impl From<(EntityRequest, PageRequest)> for proto::NeighborsRequest {
    fn from((request, page): (EntityRequest, PageRequest)) -> Self {
        Self {
            space: request.space.into(),
            entity: request.entity,
            at: request.at.map(time),
            page_size: page.limit,
            page_token: page.after.map(|token| token.0).unwrap_or_default(),
            wait_for: texts(&request.wait_for),
        }
    }
}

impl Checked for proto::NeighborsRequest {
    type Value = (EntityRequest, PageRequest);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let space = fields.name("space", self.space, SpaceId::new);
        let entity = fields.words("entity", self.entity, limits::SUBJECT);
        let at = fields.optional_time("at", self.at);
        let page = fields.page(self.page_size, self.page_token);
        let wait_for = fields.wait_for(self.wait_for);
        let request = EntityRequest {
            space: space?,
            entity: entity?,
            at: at?,
            wait_for: wait_for?,
        };
        Some((request, page?))
    }
}

impl From<EntityRequest> for proto::GetEntityRequest {
    fn from(request: EntityRequest) -> Self {
        Self {
            space: request.space.into(),
            entity: request.entity,
            wait_for: texts(&request.wait_for),
        }
    }
}

impl Checked for proto::GetEntityRequest {
    type Value = EntityRequest;

    fn check(self, fields: &mut Fields) -> Option<EntityRequest> {
        let space = fields.name("space", self.space, SpaceId::new);
        let entity = fields.words("entity", self.entity, limits::SUBJECT);
        let wait_for = fields.wait_for(self.wait_for);
        Some(EntityRequest {
            space: space?,
            entity: entity?,
            at: None,
            wait_for: wait_for?,
        })
    }
}

impl From<PathsQuery> for proto::PathsRequest {
    fn from(query: PathsQuery) -> Self {
        let from = query.from;
        Self {
            space: from.space.into(),
            from: from.entity,
            to: query.to,
            max_hops: query.hops,
            at: from.at.map(time),
            limit: query.limit,
            wait_for: texts(&from.wait_for),
        }
    }
}

impl Checked for proto::PathsRequest {
    type Value = PathsQuery;

    fn check(self, fields: &mut Fields) -> Option<PathsQuery> {
        let space = fields.name("space", self.space, SpaceId::new);
        let from = fields.words("from", self.from, limits::SUBJECT);
        let to = fields.words("to", self.to, limits::SUBJECT);
        let hops = fields.number("max_hops", self.max_hops, limits::HOPS, 1..=limits::HOPS);
        let at = fields.optional_time("at", self.at);
        let limit = fields.number("limit", self.limit, PATHS, 1..=limits::PATHS);
        let wait_for = fields.wait_for(self.wait_for);
        Some(PathsQuery {
            from: EntityRequest {
                space: space?,
                entity: from?,
                at: at?,
                wait_for: wait_for?,
            },
            to: to?,
            hops: hops?,
            limit: limit?,
        })
    }
}

impl From<Entity> for proto::Entity {
    fn from(entity: Entity) -> Self {
        Self {
            id: entity.id.to_string(),
            key: entity.key,
            name: entity.name,
        }
    }
}

impl Checked for proto::Entity {
    type Value = Entity;

    fn check(self, fields: &mut Fields) -> Option<Entity> {
        Some(Entity {
            id: fields.id("id", &self.id, "the id of an entity")?,
            key: self.key,
            name: self.name,
        })
    }
}

impl From<Edge> for proto::Triplet {
    fn from(edge: Edge) -> Self {
        let triplet = edge.triplet;
        Self {
            fact_id: triplet.fact.to_string(),
            subject: Some(edge.subject.into()),
            predicate: triplet.predicate,
            object: Some(edge.object.into()),
            negated: triplet.negated,
            valid: Some(range(triplet.valid)),
            confidence: triplet.confidence,
            turn_ids: texts(&triplet.turns),
        }
    }
}

impl Checked for proto::Triplet {
    type Value = Edge;

    fn check(self, fields: &mut Fields) -> Option<Edge> {
        let fact = fields.id("fact_id", &self.fact_id, "the id of a fact");
        let subject: Option<Entity> = fields.message("subject", self.subject);
        let object: Option<Entity> = fields.message("object", self.object);
        let valid = fields.interval("valid", self.valid);
        let turns = fields.turn_ids("turn_ids", self.turn_ids, usize::MAX);
        let (subject, object) = (subject?, object?);
        let triplet = Triplet {
            fact: fact?,
            subject: subject.id,
            predicate: self.predicate,
            object: object.id,
            negated: self.negated,
            valid: valid?,
            confidence: self.confidence,
            turns: turns?,
        };
        Some(Edge {
            subject,
            object,
            triplet,
        })
    }
}

impl From<Page<Entity>> for proto::ListEntitiesResponse {
    fn from(page: Page<Entity>) -> Self {
        let (entities, next_page_token) = parts(page);
        Self {
            entities,
            next_page_token,
        }
    }
}

impl Checked for proto::ListEntitiesResponse {
    type Value = Page<Entity>;

    fn check(self, fields: &mut Fields) -> Option<Page<Entity>> {
        let items = fields.messages("entities", self.entities, usize::MAX)?;
        Some(Page {
            items,
            next: page_token(self.next_page_token),
        })
    }
}

impl From<Neighbourhood> for proto::NeighborsResponse {
    fn from(found: Neighbourhood) -> Self {
        let (triplets, next_page_token) = parts(found.edges);
        Self {
            entity: Some(found.entity.into()),
            triplets,
            next_page_token,
        }
    }
}

impl Checked for proto::NeighborsResponse {
    type Value = Neighbourhood;

    fn check(self, fields: &mut Fields) -> Option<Neighbourhood> {
        let entity = fields.message("entity", self.entity);
        let items = fields.messages("triplets", self.triplets, usize::MAX);
        Some(Neighbourhood {
            entity: entity?,
            edges: Page {
                items: items?,
                next: page_token(self.next_page_token),
            },
        })
    }
}

impl From<Paths> for proto::PathsResponse {
    fn from(found: Paths) -> Self {
        let paths = found.paths.into_iter().map(|path| proto::Path {
            triplets: path.into_iter().map(Into::into).collect(),
        });
        Self {
            paths: paths.collect(),
            truncated: found.truncated,
        }
    }
}

impl Checked for proto::Path {
    type Value = Vec<Edge>;

    fn check(self, fields: &mut Fields) -> Option<Vec<Edge>> {
        fields.messages("triplets", self.triplets, usize::MAX)
    }
}

impl Checked for proto::PathsResponse {
    type Value = Paths;

    fn check(self, fields: &mut Fields) -> Option<Paths> {
        Some(Paths {
            paths: fields.messages("paths", self.paths, usize::MAX)?,
            truncated: self.truncated,
        })
    }
}
