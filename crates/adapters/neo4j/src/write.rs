//! One write, one transaction.

use std::collections::{BTreeSet, HashMap};

use memfleet_domain::Scope;
use memfleet_domain::graph::{Entity, Triplet};
use memfleet_ports::graph::GraphWrite;
use neo4rs::{BoltType, Error, Query, Txn, query};

use crate::connection::{Neo4jGraph, Outcome};
use crate::read::texts;

/// Triplets that go, and their ends.
const FORGET: &str = "MATCH (a)-[s:MEMFLEET_SAYS]->(b) WHERE s.tenant = $tenant AND s.space = $space AND any(turn IN s.turns WHERE turn IN $turns)
    WITH s, a.id AS a, b.id AS b DELETE s RETURN DISTINCT a, b";
const REPLACE: &str = "MATCH (a)-[s:MEMFLEET_SAYS]->(b) WHERE s.tenant = $tenant AND s.space = $space AND s.fact IN $facts
    WITH s, a.id AS a, b.id AS b DELETE s RETURN DISTINCT a, b";
/// Of one that is there already the name stays.
const NAME: &str = "UNWIND $entities AS entity MERGE (e:MemfleetEntity {tenant: $tenant, space: $space, id: entity.id})
    ON CREATE SET e.key = entity.key, e.name = entity.name";
const SAY: &str = "UNWIND $triplets AS t
    MATCH (a:MemfleetEntity {tenant: $tenant, space: $space, id: t.subject})
    MATCH (b:MemfleetEntity {tenant: $tenant, space: $space, id: t.object})
    MERGE (a)-[s:MEMFLEET_SAYS {tenant: $tenant, space: $space, fact: t.fact, object: t.object}]->(b)
    SET s.predicate = t.predicate, s.valid_from = t.valid_from, s.valid_until = t.valid_until, s.turns = t.turns, s.document = t.document";
const TIDY: &str = "UNWIND $ids AS id MATCH (e:MemfleetEntity {tenant: $tenant, space: $space, id: id}) WHERE NOT (e)--() DELETE e";

/// Triplets, or entities, that are removed together.
const REMOVED: i64 = 10_000;
const UNSAY: &str = "MATCH ()-[s:MEMFLEET_SAYS]->() WHERE s.tenant = $tenant AND s.space = $space WITH s LIMIT $limit DELETE s RETURN count(s) AS gone";
/// Every key is such: the index of keys needs a condition on them.
const UNNAME: &str = "MATCH (e:MemfleetEntity) WHERE e.tenant = $tenant AND e.space = $space AND e.key >= '' WITH e LIMIT $limit
    DETACH DELETE e RETURN count(e) AS gone";

/// Removes some of what there is of a space, triplets before entities; whether there may be more.
pub(crate) async fn clear(graph: &Neo4jGraph, scope: &Scope) -> Outcome<bool> {
    let mut transaction = graph.begin().await?;
    let mut is_full = false;
    for removing in [UNSAY, UNNAME] {
        let removing = of(scope, removing).param("limit", REMOVED);
        let mut stream = transaction.execute(removing).await?;
        while let Some(row) = stream.next(transaction.handle()).await? {
            is_full |= row.get::<i64>("gone")? == REMOVED;
        }
        if is_full {
            break;
        }
    }
    transaction.commit().await?;
    Ok(is_full)
}

pub(crate) async fn apply(graph: &Neo4jGraph, scope: &Scope, write: &GraphWrite) -> Outcome<()> {
    let mut transaction = graph.begin().await?;
    let mut left = BTreeSet::new();
    if !write.forgotten.is_empty() {
        let forget = of(scope, FORGET).param("turns", texts(&write.forgotten));
        left.extend(ends(&mut transaction, forget).await?);
    }
    if !write.replaced.is_empty() {
        let replace = of(scope, REPLACE).param("facts", texts(&write.replaced));
        left.extend(ends(&mut transaction, replace).await?);
    }
    if !write.triplets.is_empty() {
        let entities: Vec<BoltType> = write.entities.iter().map(entity).collect();
        let name = of(scope, NAME).param("entities", entities);
        transaction.run(name).await?;
        let triplets: Outcome<Vec<BoltType>> = write.triplets.iter().map(triplet).collect();
        let say = of(scope, SAY).param("triplets", triplets?);
        transaction.run(say).await?;
    }
    if !left.is_empty() {
        let ids: Vec<String> = left.into_iter().collect();
        transaction.run(of(scope, TIDY).param("ids", ids)).await?;
    }
    transaction.commit().await?;
    Ok(())
}

/// A query in a space.
pub(crate) fn of(scope: &Scope, text: &str) -> Query {
    let (tenant, space) = (scope.tenant.as_str(), scope.space.as_str());
    query(text).param("tenant", tenant).param("space", space)
}

/// Whom the triplets connected that a query removes.
async fn ends(transaction: &mut Txn, removing: Query) -> Outcome<BTreeSet<String>> {
    let mut stream = transaction.execute(removing).await?;
    let mut ends = BTreeSet::new();
    while let Some(row) = stream.next(transaction.handle()).await? {
        for end in ["a", "b"] {
            ends.insert(row.get::<String>(end)?);
        }
    }
    Ok(ends)
}

fn entity(entity: &Entity) -> BoltType {
    let fields: HashMap<&str, BoltType> = HashMap::from([
        ("id", entity.id.to_string().into()),
        ("key", entity.key.as_str().into()),
        ("name", entity.name.as_str().into()),
    ]);
    fields.into()
}

fn triplet(triplet: &Triplet) -> Outcome<BoltType> {
    let micros =
        |instant: Option<memfleet_domain::Timestamp>| instant.map(|it| it.timestamp_micros());
    let document = serde_json::to_string(triplet);
    let document = document.map_err(|error| Error::UnexpectedMessage(error.to_string()))?;
    let fields: HashMap<&str, BoltType> = HashMap::from([
        ("fact", triplet.fact.to_string().into()),
        ("subject", triplet.subject.to_string().into()),
        ("object", triplet.object.to_string().into()),
        ("predicate", triplet.predicate.as_str().into()),
        ("valid_from", micros(triplet.valid.start).into()),
        ("valid_until", micros(triplet.valid.end).into()),
        ("turns", texts(&triplet.turns).into()),
        ("document", document.into()),
    ]);
    Ok(fields.into())
}
