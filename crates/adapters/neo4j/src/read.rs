//! Entities and triplets as they are.

use memfleet_domain::Scope;
use memfleet_domain::graph::{Entity, Triplet};
use memfleet_domain::ids::{DerivationId, EntityId};
use memfleet_ports::graph::{TripletQuery, entity_token, triplet_token};
use memfleet_ports::ledger::{Page, PageToken};
use neo4rs::{Error, Row, query};

use crate::connection::{Neo4jGraph, Outcome};
use crate::write::of;

const ENTITIES: &str = "MATCH (e:MemfleetEntity) WHERE e.tenant = $tenant AND e.space = $space AND e.key STARTS WITH $prefix AND e.key > $after
    RETURN e.id AS id, e.key AS key, e.name AS name ORDER BY e.key LIMIT $limit";
const NAMED: &str = "UNWIND $ids AS id WITH DISTINCT id MATCH (e:MemfleetEntity {tenant: $tenant, space: $space, id: id}) RETURN e.id AS id, e.key AS key, e.name AS name";
/// The three ways to find triplets, each by an index …
const OF_ENDS: &str = "UNWIND $ids AS id WITH DISTINCT id MATCH (:MemfleetEntity {tenant: $tenant, space: $space, id: id})-[s:MEMFLEET_SAYS]-()";
const OF_FACTS: &str = "UNWIND $ids AS id WITH DISTINCT id MATCH ()-[s:MEMFLEET_SAYS]->() WHERE s.tenant = $tenant AND s.space = $space AND s.fact = id";
const OF_SPACE: &str = "MATCH ()-[s:MEMFLEET_SAYS]->() WHERE s.tenant = $tenant AND s.space = $space AND s.fact >= left($after, 36)";
/// … and what holds for each.
const TRIPLETS: &str = "WITH DISTINCT s WHERE s.fact + s.object > $after AND ($predicates = [] OR s.predicate IN $predicates)
        AND ($at IS NULL OR (coalesce(s.valid_from <= $at, true) AND coalesce(s.valid_until > $at, true)))
    RETURN s.document AS document, s.fact + s.object AS place ORDER BY place LIMIT $limit";

/// Whether the server answers.
pub(crate) async fn check(graph: &Neo4jGraph) -> Outcome<()> {
    graph.rows(query("RETURN 1 AS one")).await.map(drop)
}

pub(crate) async fn entities(
    graph: &Neo4jGraph,
    scope: &Scope,
    prefix: &str,
    limit: u32,
    after: &str,
) -> Outcome<Page<Entity>> {
    let listing = of(scope, ENTITIES)
        .param("prefix", prefix)
        .param("after", after)
        .param("limit", i64::from(limit) + 1);
    let rows = graph.rows(listing).await?;
    let entities: Outcome<Vec<Entity>> = rows.iter().map(entity).collect();
    Ok(cut(entities?, limit, |entity| entity_token(&entity.key)))
}

pub(crate) async fn named(
    graph: &Neo4jGraph,
    scope: &Scope,
    ids: &[EntityId],
) -> Outcome<Vec<Entity>> {
    let rows = graph
        .rows(of(scope, NAMED).param("ids", texts(ids)))
        .await?;
    rows.iter().map(entity).collect()
}

pub(crate) async fn triplets(
    graph: &Neo4jGraph,
    scope: &Scope,
    asked: TripletQuery<'_>,
    limit: u32,
    after: Option<(DerivationId, EntityId)>,
) -> Outcome<Page<Triplet>> {
    let (found, ids) = match (asked.ends, asked.facts) {
        ([], []) => (OF_SPACE, Vec::new()),
        ([], facts) => (OF_FACTS, texts(facts)),
        (ends, _) => (OF_ENDS, texts(ends)),
    };
    let listing = of(scope, &format!("{found} {TRIPLETS}"))
        .param("ids", ids)
        .param("predicates", texts(asked.predicates))
        .param("at", asked.at.map(|at| at.timestamp_micros()))
        .param("after", after.map_or_else(String::new, place))
        .param("limit", i64::from(limit) + 1);
    let rows = graph.rows(listing).await?;
    let triplets: Outcome<Vec<Triplet>> = rows.iter().map(triplet).collect();
    Ok(cut(triplets?, limit, |it| {
        triplet_token(it.fact, it.object)
    }))
}

/// Ids as they are stored.
pub(crate) fn texts(ids: &[impl ToString]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

/// Where a triplet stands in the order of all.
fn place((fact, object): (DerivationId, EntityId)) -> String {
    format!("{fact}{object}")
}

/// A page of at most `limit` of what was read; one more means that there is a next one.
fn cut<T>(mut items: Vec<T>, limit: u32, token: impl Fn(&T) -> PageToken) -> Page<T> {
    let more = items.len() > limit as usize;
    items.truncate(limit as usize);
    let last = items.last().filter(|_| more);
    Page {
        next: last.map(token),
        items,
    }
}

fn entity(row: &Row) -> Outcome<Entity> {
    let id: String = row.get("id")?;
    Ok(Entity {
        id: id.parse().map_err(|_| unexpected("an id is no UUID"))?,
        key: row.get("key")?,
        name: row.get("name")?,
    })
}

fn triplet(row: &Row) -> Outcome<Triplet> {
    let document: String = row.get("document")?;
    let triplet = serde_json::from_str(&document);
    triplet.map_err(|_| unexpected("a triplet is not as it was written"))
}

fn unexpected(what: &str) -> Error {
    Error::UnexpectedMessage(what.to_owned())
}
