//! What the database knows of the batches that are about to be stored.

use std::collections::HashMap;

use memfleet_columns::{Before, name, time, to_hash};
use memfleet_domain::Scope;
use memfleet_domain::ids::{SessionId, TurnId};
use memfleet_domain::time::Timestamp;
use memfleet_ports::ledger::IndexedBatch;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use super::plan::{Plan, Version};
use super::session::{OpenSession, Place};
use crate::failure::Outcome;
use crate::ledger::batches;
use crate::rows::{id_list, to_turn_id, to_u32};
use crate::scope::SpaceRow;
use crate::tombstones;

/// Everything at once; the space is locked.
pub async fn load<'b>(
    connection: &mut PgConnection,
    scope: &Scope,
    space: SpaceRow,
    batches: &[&'b IndexedBatch],
) -> Outcome<Plan<'b>> {
    let tenant = scope.tenant.as_str();
    let turns = || batches.iter().flat_map(|batch| &batch.batch.turns);
    let replaced = turns().filter_map(|turn| turn.replaces.as_ref());
    let ids = id_list(turns().map(|turn| &turn.id).chain(replaced));
    let statuses = batches::of(
        connection,
        tenant,
        space.id,
        batches.iter().map(|batch| batch.batch.id),
    )
    .await?;
    let before = before(connection, tenant, space.id, &ids).await?;
    let sessions = sessions(connection, tenant, space.id, batches).await?;
    let replaced = id_list(turns().filter_map(|turn| turn.replaces.as_ref()));
    let versions = versions(connection, tenant, space.id, replaced).await?;
    let mut plan = Plan::new(space, before, statuses, sessions, versions);
    let first = batches.first().and_then(|batch| batch.batch.turns.first());
    plan.named_at = first.map_or(Timestamp::UNIX_EPOCH, |turn| turn.recorded_at);
    Ok(plan)
}

async fn before(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    ids: &[Uuid],
) -> Outcome<Before> {
    let mut before = Before {
        hashes: HashMap::new(),
        forgotten: tombstones::of(connection, tenant, space, ids).await?,
    };
    let rows = sqlx::query(
        "SELECT id, content_hash FROM turns WHERE tenant = $1 AND space = $2 AND id = ANY ($3)",
    )
    .bind(tenant)
    .bind(space)
    .bind(ids)
    .fetch_all(connection)
    .await?;
    for row in rows {
        before
            .hashes
            .insert(to_turn_id(row.try_get(0)?), to_hash(row.try_get(1)?)?);
    }
    Ok(before)
}

/// Turns and all newer versions of them.
async fn versions(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    replaced: Vec<Uuid>,
) -> Outcome<HashMap<TurnId, Version>> {
    if replaced.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = sqlx::query(
        "WITH RECURSIVE versions(id) AS (
             SELECT unnest($3::uuid[])
             UNION
             SELECT t.replaced_by FROM versions v
             JOIN turns t ON t.tenant = $1 AND t.space = $2 AND t.id = v.id WHERE t.replaced_by IS NOT NULL)
         SELECT t.id, t.acceptance, t.ordinal, t.recorded_at, t.replaced_by FROM versions v
         JOIN turns t ON t.tenant = $1 AND t.space = $2 AND t.id = v.id",
    )
    .bind(tenant)
    .bind(space)
    .bind(replaced)
    .fetch_all(connection)
    .await?;
    let version = |row: &PgRow| {
        let version = Version {
            place: (row.try_get(1)?, to_u32(row.try_get(2)?)),
            recorded_at: time(row.try_get(3)?)?,
            next: row.try_get::<Option<Uuid>, _>(4)?.map(to_turn_id),
        };
        Ok((to_turn_id(row.try_get(0)?), version))
    };
    rows.iter().map(version).collect()
}

/// The sessions that the batches name, each with its turns from the one before the earliest acceptance that comes: nearly always
/// the last one alone.
async fn sessions(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    batches: &[&IndexedBatch],
) -> Outcome<HashMap<SessionId, OpenSession>> {
    let mut earliest: HashMap<&str, i64> = HashMap::new();
    for batch in batches {
        let acceptance = batch.acceptance as i64;
        for turn in &batch.batch.turns {
            let earliest = earliest.entry(turn.session.as_str()).or_insert(acceptance);
            *earliest = acceptance.min(*earliest);
        }
    }
    let (names, acceptances): (Vec<_>, Vec<_>) = earliest.into_iter().unzip();
    let rows = sqlx::query(
        "SELECT s.name, s.turns, s.started_at, s.first_at, s.last_at, t.id, t.acceptance, t.ordinal, t.position
         FROM unnest($3::text[], $4::bigint[]) AS named(name, acceptance)
         JOIN sessions s ON s.tenant = $1 AND s.space = $2 AND s.name = named.name
         LEFT JOIN LATERAL (
             (SELECT id, acceptance, ordinal, position FROM turns
              WHERE tenant = $1 AND space = $2 AND session = s.id AND acceptance >= named.acceptance)
             UNION ALL
             (SELECT id, acceptance, ordinal, position FROM turns
              WHERE tenant = $1 AND space = $2 AND session = s.id AND acceptance < named.acceptance
              ORDER BY acceptance DESC, ordinal DESC LIMIT 1)
         ) t ON true
         ORDER BY s.id, t.acceptance, t.ordinal",
    )
    .bind(tenant)
    .bind(space)
    .bind(names)
    .bind(acceptances)
    .fetch_all(connection)
    .await?;
    let mut sessions = HashMap::new();
    for row in &rows {
        let id = name(SessionId::new(row.try_get::<&str, _>(0)?))?;
        let session = sessions.entry(id).or_insert(session(row)?);
        session.places.extend(place(row)?);
    }
    Ok(sessions)
}

fn session(row: &PgRow) -> Outcome<OpenSession> {
    Ok(OpenSession {
        turns: row.try_get(1)?,
        started_at: row.try_get(2)?,
        first_at: row.try_get(3)?,
        last_at: row.try_get(4)?,
        is_new: false,
        places: Vec::new(),
    })
}

fn place(row: &PgRow) -> Outcome<Option<Place>> {
    let Some(id) = row.try_get::<Option<Uuid>, _>(5)? else {
        return Ok(None);
    };
    let position = row.try_get::<i64, _>(8)? as u32;
    Ok(Some(Place {
        id: to_turn_id(id),
        acceptance: row.try_get(6)?,
        ordinal: to_u32(row.try_get(7)?),
        position,
        stored: Some(position),
    }))
}
