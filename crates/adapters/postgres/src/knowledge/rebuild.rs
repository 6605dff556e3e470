//! A rebuild: facts that are ready and not in use, and the moment from which on they are.

use std::collections::HashSet;

use memfleet_columns::{json, to_json};
use memfleet_domain::Scope;
use memfleet_domain::derivation::Derivation;
use memfleet_domain::ids::ChangeId;
use memfleet_ports::knowledge::{Rebuilding, Revision, Stage, Staging};
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use super::apply::{lineage, slot};
use super::read::{derivation, select};
use crate::failure::Outcome;
use crate::passages;
use crate::rows::{from_derivation_id, from_u32, to_u32};
use crate::scope::{self, SpaceRow};

/// Begins one, unless one is under way.
pub async fn begin(connection: &mut PgConnection, scope: &Scope) -> Outcome<Option<Rebuilding>> {
    let space = scope::lock(connection, scope).await?;
    let Some(space) = space.filter(|space| space.is_alive) else {
        return Ok(None);
    };
    sqlx::query(
        "INSERT INTO progress (tenant, space, stage, goal, behind_since)
         VALUES ($1, $2, $3, $4, (extract(epoch FROM clock_timestamp()) * 1e6)::bigint) ON CONFLICT DO NOTHING",
    )
    .bind(scope.tenant.as_str())
    .bind(space.id)
    .bind(Stage::Rebuild.name())
    .bind(space.head)
    .execute(&mut *connection)
    .await?;
    find(connection, scope, space.id).await
}

/// The one of a space, by name.
pub async fn of(connection: &mut PgConnection, scope: &Scope) -> Outcome<Option<Rebuilding>> {
    match scope::find_alive(connection, scope).await? {
        Some(space) => find(connection, scope, space.id).await,
        None => Ok(None),
    }
}

async fn find(
    connection: &mut PgConnection,
    scope: &Scope,
    space: i64,
) -> Outcome<Option<Rebuilding>> {
    let row = sqlx::query(
        "SELECT p.reached, p.goal, (
             SELECT count(*) FROM staged s WHERE s.tenant = $1 AND s.space = $2 AND s.document IS NOT NULL)
         FROM progress p WHERE p.tenant = $1 AND p.space = $2 AND p.stage = $3",
    )
    .bind(scope.tenant.as_str())
    .bind(space)
    .bind(Stage::Rebuild.name())
    .fetch_optional(connection)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let number = |index| row.try_get::<i64, _>(index).map(i64::cast_unsigned);
    Ok(Some(Rebuilding {
        reached: number(0)?,
        goal: number(1)?,
        staged: number(2)?,
    }))
}

/// Facts in use that an extractor made and that were not derived again.
pub async fn unconfirmed(
    connection: &mut PgConnection,
    scope: &Scope,
    limit: u32,
) -> Outcome<Vec<Derivation>> {
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(Vec::new());
    };
    let mut query = select(scope, space.id);
    // As text: a document may hold an escaped zero, which no JSON operator takes. What somebody said has its quotes escaped.
    query.push(
        " AND d.kind = 0 AND d.known_until IS NULL AND coalesce(d.valid_from < d.valid_until, true)
          AND d.document LIKE '%\"origin\":{\"extracted\":%'
          AND NOT EXISTS (SELECT FROM staged s WHERE s.tenant = d.tenant AND s.space = d.space AND s.id = d.id)
          AND d.first <= (SELECT p.goal FROM progress p WHERE p.tenant = d.tenant AND p.space = d.space AND p.stage = 'rebuild')
          ORDER BY d.first LIMIT ",
    );
    query.push_bind(i64::from(limit));
    let rows = query.build().fetch_all(connection).await?;
    rows.iter().map(derivation).collect()
}

/// Notes what a rebuild found; the space's next passage number moves on.
pub async fn stage(
    connection: &mut PgConnection,
    tenant: &str,
    space: &mut SpaceRow,
    staging: &Staging,
) -> Outcome<()> {
    if staging.new.is_empty() && staging.confirmed.is_empty() {
        return Ok(());
    }
    let confirmed = staging.confirmed.iter().map(|id| from_derivation_id(*id));
    sqlx::query(
        "INSERT INTO staged (tenant, space, id) SELECT $1, $2, * FROM unnest($3::uuid[]) ON CONFLICT DO NOTHING",
    )
    .bind(tenant)
    .bind(space.id)
    .bind(confirmed.collect::<Vec<_>>())
    .execute(&mut *connection)
    .await?;
    let known = known(connection, tenant, space.id, &staging.new).await?;
    let mut seen = HashSet::new();
    let new = staging.new.iter().filter(|revision| {
        let id = revision.derivation.id;
        !known.contains(&from_derivation_id(id)) && seen.insert(id)
    });
    let mut placed = Vec::new();
    for revision in new {
        let passage = revision.passage.as_ref();
        placed.push((
            space.next_passage,
            passage.expect("a first version has something to be found by"),
            &revision.derivation,
        ));
        space.next_passage += 1;
    }
    let passages: Vec<_> = placed
        .iter()
        .map(|(number, passage, _)| (*number, *passage, slot(space.slots, passage)))
        .collect();
    passages::put(connection, tenant, space.id, &passages).await?;
    lineage(
        connection,
        tenant,
        space.id,
        placed.iter().map(|(.., derivation)| *derivation),
    )
    .await?;
    sqlx::query(
        "INSERT INTO staged (tenant, space, id, passage, document)
         SELECT $1, $2, * FROM unnest($3::uuid[], $4::integer[], $5::text[])",
    )
    .bind(tenant)
    .bind(space.id)
    .bind(
        placed
            .iter()
            .map(|(.., derivation)| from_derivation_id(derivation.id))
            .collect::<Vec<_>>(),
    )
    .bind(from_u32(placed.iter().map(|(number, ..)| *number)))
    .bind(
        placed
            .iter()
            .map(|(.., derivation)| to_json(derivation))
            .collect::<Vec<_>>(),
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Those that are staged or in use.
async fn known(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    new: &[Revision],
) -> Outcome<HashSet<Uuid>> {
    let ids = new
        .iter()
        .map(|revision| from_derivation_id(revision.derivation.id));
    let known: Vec<Uuid> = sqlx::query_scalar(
        "SELECT id FROM staged WHERE tenant = $1 AND space = $2 AND id = ANY ($3)
         UNION SELECT id FROM derivations WHERE tenant = $1 AND space = $2 AND id = ANY ($3)",
    )
    .bind(tenant)
    .bind(space)
    .bind(ids.collect::<Vec<_>>())
    .fetch_all(connection)
    .await?;
    Ok(known.into_iter().collect())
}

/// Ends the rebuild: what was staged and is not in use yet, as written by a change, with its passages.
pub async fn end(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    by: ChangeId,
) -> Outcome<Vec<(Derivation, u32)>> {
    let rows = sqlx::query(
        "SELECT document, passage FROM staged s WHERE tenant = $1 AND space = $2 AND document IS NOT NULL AND NOT EXISTS (
             SELECT FROM derivations d WHERE d.tenant = $1 AND d.space = $2 AND d.id = s.id) ORDER BY passage",
    )
    .bind(tenant)
    .bind(space)
    .fetch_all(&mut *connection)
    .await?;
    for over in [
        "DELETE FROM staged WHERE tenant = $1 AND space = $2",
        "DELETE FROM progress WHERE tenant = $1 AND space = $2 AND stage = 'rebuild'",
    ] {
        sqlx::query(over)
            .bind(tenant)
            .bind(space)
            .execute(&mut *connection)
            .await?;
    }
    let staged = rows.iter().map(|row| {
        let staged: Derivation = json(row.try_get(0)?)?;
        let published = Derivation {
            change: by,
            ..staged
        };
        Ok((published, to_u32(row.try_get(1)?)))
    });
    staged.collect()
}
