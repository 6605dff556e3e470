//! The graph port.

mod standing;

use async_trait::async_trait;
use memfleet_columns::{json, page, to_derivation_id, to_entity_id, to_json};
use memfleet_domain::Scope;
use memfleet_domain::graph::{Entity, Triplet};
use memfleet_domain::ids::EntityId;
use memfleet_domain::time::Timestamp;
use memfleet_ports::graph::{
    Graph, GraphWrite, TripletQuery, entity_place, entity_token, triplet_place, triplet_token,
};
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::store::Result;
use sqlx::sqlite::SqliteRow;
use sqlx::{QueryBuilder, Row, Sqlite, SqliteConnection};

use crate::failure::Outcome;
use crate::rows::id_list;
use crate::scope;
use crate::store::SqliteStore;
use standing::standing;

#[async_trait]
impl Graph for SqliteStore {
    async fn write(&self, scope: &Scope, write: GraphWrite) -> Result<()> {
        let mut connection = self.write().await?;
        if let Some(space) = scope::find_alive(&mut connection, scope).await? {
            let write = standing(&mut connection, space, write).await?;
            apply(&mut connection, space.id, &write).await?;
            connection.commit().await?;
        }
        Ok(())
    }

    async fn clear(&self, scope: &Scope) -> Result<()> {
        let mut connection = self.write().await?;
        if let Some(space) = scope::find(&mut connection, scope).await? {
            remove_all(&mut connection, space.id).await?;
            connection.commit().await?;
        }
        Ok(())
    }

    async fn check(&self) -> Result<()> {
        // Whoever asks the store asks this.
        Ok(())
    }

    async fn entities(
        &self,
        scope: &Scope,
        prefix: &str,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Entity>> {
        let mut read = self.read().await?;
        Ok(entities(&mut read, scope, prefix, limit, after).await?)
    }

    async fn named(&self, scope: &Scope, ids: &[EntityId]) -> Result<Vec<Entity>> {
        let mut read = self.read().await?;
        Ok(named(&mut read, scope, ids).await?)
    }

    async fn triplets(
        &self,
        scope: &Scope,
        query: TripletQuery<'_>,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Triplet>> {
        let mut read = self.read().await?;
        Ok(triplets(&mut read, scope, query, limit, after).await?)
    }
}

async fn apply(connection: &mut SqliteConnection, space: i64, write: &GraphWrite) -> Outcome<()> {
    let mut left = Vec::new();
    if !write.forgotten.is_empty() {
        // What is derived from them went with them, here too; this is for triplets that were written since.
        let drawn: Vec<String> = sqlx::query_scalar(
            "SELECT DISTINCT hex(t.fact) FROM triplets t, json_each(t.document, '$.turns') turn
             WHERE t.space = ?1 AND turn.value IN (SELECT value FROM json_each(?2))",
        )
        .bind(space)
        .bind(id_list(&write.forgotten))
        .fetch_all(&mut *connection)
        .await?;
        left.extend(remove_triplets(connection, space, &to_json(&drawn)).await?);
    }
    left.extend(remove_triplets(connection, space, &to_json(&write.replaced)).await?);
    for entity in &write.entities {
        sqlx::query("INSERT INTO entities (space, id, key, name) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING")
            .bind(space)
            .bind(entity.id.as_bytes().to_vec())
            .bind(&entity.key)
            .bind(&entity.name)
            .execute(&mut *connection)
            .await?;
    }
    for triplet in &write.triplets {
        let instant = |time: Option<Timestamp>| time.map(|time| time.timestamp_micros());
        sqlx::query(
            "INSERT INTO triplets (space, fact, object, subject, valid_from, valid_until, document) VALUES (?, ?, ?, ?, ?, ?, ?)
             ON CONFLICT DO UPDATE SET subject = excluded.subject, valid_from = excluded.valid_from,
                 valid_until = excluded.valid_until, document = excluded.document",
        )
        .bind(space)
        .bind(triplet.fact.as_bytes().to_vec())
        .bind(triplet.object.as_bytes().to_vec())
        .bind(triplet.subject.as_bytes().to_vec())
        .bind(instant(triplet.valid.start))
        .bind(instant(triplet.valid.end))
        .bind(to_json(triplet))
        .execute(&mut *connection)
        .await?;
    }
    remove_orphans(connection, space, &left).await
}

/// The triplets of these facts (a JSON list of ids), and entities that are no end of any other.
pub(crate) async fn remove(
    connection: &mut SqliteConnection,
    space: i64,
    facts: &str,
) -> Outcome<()> {
    let left = remove_triplets(connection, space, facts).await?;
    remove_orphans(connection, space, &left).await
}

/// The graph of a space.
pub(crate) async fn remove_all(connection: &mut SqliteConnection, space: i64) -> Outcome<()> {
    for delete in [
        "DELETE FROM entities WHERE space = ?",
        "DELETE FROM triplets WHERE space = ?",
    ] {
        let delete = sqlx::query(delete).bind(space);
        delete.execute(&mut *connection).await?;
    }
    Ok(())
}

/// The ends of what was removed.
async fn remove_triplets(
    connection: &mut SqliteConnection,
    space: i64,
    facts: &str,
) -> Outcome<Vec<String>> {
    let removed: Vec<(String, String)> = sqlx::query_as(
        "DELETE FROM triplets WHERE space = ? AND fact IN (SELECT unhex(value, '-') FROM json_each(?))
         RETURNING hex(subject), hex(object)",
    )
    .bind(space)
    .bind(facts)
    .fetch_all(connection)
    .await?;
    let ends = removed
        .into_iter()
        .flat_map(|(subject, object)| [subject, object]);
    Ok(ends.collect())
}

async fn remove_orphans(
    connection: &mut SqliteConnection,
    space: i64,
    ends: &[String],
) -> Outcome<()> {
    sqlx::query(
        "DELETE FROM entities WHERE space = ?1 AND id IN (SELECT unhex(value) FROM json_each(?2))
             AND NOT EXISTS (SELECT 1 FROM triplets t WHERE t.space = ?1 AND t.subject = entities.id)
             AND NOT EXISTS (SELECT 1 FROM triplets t WHERE t.space = ?1 AND t.object = entities.id)",
    )
    .bind(space)
    .bind(to_json(&ends))
    .execute(connection)
    .await?;
    Ok(())
}

async fn entities(
    connection: &mut SqliteConnection,
    scope: &Scope,
    prefix: &str,
    limit: u32,
    after: Option<&PageToken>,
) -> Outcome<Page<Entity>> {
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(nothing());
    };
    let after = entity_place(after)?;
    // Keys that begin so are those from it on, as long as they do.
    let rows = sqlx::query(
        "SELECT id, key, name FROM entities WHERE space = ?1 AND key >= ?2 AND key > ?3 AND substr(key, 1, length(?2)) = ?2
         ORDER BY key LIMIT ?4",
    )
    .bind(space.id)
    .bind(prefix)
    .bind(after)
    .bind(i64::from(limit) + 1)
    .fetch_all(connection)
    .await?;
    page(&rows, limit as usize, entity, |row| {
        Ok(entity_token(row.try_get(1)?))
    })
}

async fn named(
    connection: &mut SqliteConnection,
    scope: &Scope,
    ids: &[EntityId],
) -> Outcome<Vec<Entity>> {
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(Vec::new());
    };
    let rows = sqlx::query(
        "SELECT id, key, name FROM entities WHERE space = ? AND id IN (SELECT unhex(value, '-') FROM json_each(?))",
    )
    .bind(space.id)
    .bind(to_json(&ids))
    .fetch_all(connection)
    .await?;
    rows.iter().map(entity).collect()
}

async fn triplets(
    connection: &mut SqliteConnection,
    scope: &Scope,
    asked: TripletQuery<'_>,
    limit: u32,
    after: Option<&PageToken>,
) -> Outcome<Page<Triplet>> {
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(nothing());
    };
    let mut query = QueryBuilder::new("");
    push_found(&mut query, space.id, asked);
    if let Some((fact, object)) = triplet_place(after)? {
        query
            .push(" AND (fact, object) > (")
            .push_bind(fact.as_bytes().to_vec());
        query
            .push(", ")
            .push_bind(object.as_bytes().to_vec())
            .push(")");
    }
    if !asked.predicates.is_empty() {
        query
            .push(" AND document ->> '$.predicate' IN (SELECT value FROM json_each(")
            .push_bind(to_json(&asked.predicates))
            .push("))");
    }
    if let Some(at) = asked.at {
        let micros = at.timestamp_micros();
        query
            .push(" AND coalesce(valid_from <= ")
            .push_bind(micros)
            .push(", true)");
        query
            .push(" AND coalesce(valid_until > ")
            .push_bind(micros)
            .push(", true)");
    }
    query
        .push(" ORDER BY fact, object LIMIT ")
        .push_bind(i64::from(limit) + 1);
    let rows = query.build().fetch_all(connection).await?;
    let triplet = |row: &SqliteRow| Ok(json(row.try_get(0)?)?);
    page(&rows, limit as usize, triplet, |row| {
        let (fact, object) = (row.try_get(1)?, row.try_get(2)?);
        let (fact, object) = (to_derivation_id(fact)?, to_entity_id(object)?);
        Ok(triplet_token(fact, object))
    })
}

/// The triplets of a space, of some ends (by the index of each end), or of some facts.
fn push_found(query: &mut QueryBuilder<Sqlite>, space: i64, asked: TripletQuery<'_>) {
    const SHOWN: &str = "SELECT document, fact, object FROM ";
    if asked.ends.is_empty() {
        query
            .push(SHOWN)
            .push("triplets WHERE space = ")
            .push_bind(space);
        if !asked.facts.is_empty() {
            query
                .push(" AND fact IN (SELECT unhex(value, '-') FROM json_each(")
                .push_bind(to_json(&asked.facts))
                .push("))");
        }
        return;
    }
    query
        .push("WITH ends AS (SELECT unhex(value, '-') AS id FROM json_each(")
        .push_bind(to_json(&asked.ends));
    for (open, end) in [(")), found AS (", "subject"), (" UNION ", "object")] {
        query
            .push(open)
            .push("SELECT fact, object, valid_from, valid_until, document FROM triplets WHERE space = ")
            .push_bind(space);
        query
            .push(" AND ")
            .push(end)
            .push(" IN (SELECT id FROM ends)");
    }
    query.push(") ").push(SHOWN).push("found WHERE true");
}

fn entity(row: &SqliteRow) -> Outcome<Entity> {
    Ok(Entity {
        id: to_entity_id(row.try_get(0)?)?,
        key: row.try_get(1)?,
        name: row.try_get(2)?,
    })
}

fn nothing<T>() -> Page<T> {
    Page {
        items: Vec::new(),
        next: None,
    }
}
