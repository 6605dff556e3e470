//! How far an agent is in each space, and whose turn it is.

use memfleet_columns::name;
use memfleet_domain::Scope;
use memfleet_domain::ids::{SpaceId, TenantId};
use memfleet_domain::time::Timestamp;
use memfleet_ports::knowledge::{
    LONGEST_LOST_PAUSE, LOST_CLAIMS, LOST_PAUSE, Position, Progress, Stage, note_lost_claims,
};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::rebuild;
use crate::failure::Outcome;
use crate::scope;

/// Spaces whose changes the stage has not worked through: of each tenant the one that is furthest behind, then the second of each, and so on.
pub async fn pending(
    connection: &mut SqliteConnection,
    stage: Stage,
    limit: u32,
) -> Outcome<Vec<Scope>> {
    if stage == Stage::Rebuild {
        return rebuilds(connection, limit).await;
    }
    let rows = sqlx::query(
        "SELECT tenant, name FROM (
             SELECT s.tenant, s.name, s.head - coalesce(p.reached, 0) AS behind,
                 row_number() OVER (PARTITION BY s.tenant ORDER BY s.head - coalesce(p.reached, 0) DESC) AS place
             FROM spaces s LEFT JOIN progress p ON p.space = s.id AND p.stage = ?
             WHERE s.name IS NOT NULL AND s.head > coalesce(p.reached, 0))
         ORDER BY place, behind DESC LIMIT ?",
    )
    .bind(stage.name())
    .bind(limit)
    .fetch_all(connection)
    .await?;
    rows.iter().map(to_scope).collect()
}

/// Spaces whose rebuild is under way.
async fn rebuilds(connection: &mut SqliteConnection, limit: u32) -> Outcome<Vec<Scope>> {
    let rows = sqlx::query(
        "SELECT s.tenant, s.name FROM progress p JOIN spaces s ON s.id = p.space
         WHERE p.goal IS NOT NULL AND s.name IS NOT NULL LIMIT ?",
    )
    .bind(limit)
    .fetch_all(connection)
    .await?;
    rows.iter().map(to_scope).collect()
}

fn to_scope(row: &SqliteRow) -> Outcome<Scope> {
    Ok(Scope {
        tenant: name(TenantId::new(row.try_get::<&str, _>(0)?))?,
        space: name(SpaceId::new(row.try_get::<&str, _>(1)?))?,
    })
}

/// Where a stage stands.
pub async fn position(
    connection: &mut SqliteConnection,
    scope: &Scope,
    stage: Stage,
) -> Outcome<Option<Position>> {
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(None);
    };
    let reached: Option<i64> =
        sqlx::query_scalar("SELECT reached FROM progress WHERE space = ? AND stage = ?")
            .bind(space.id)
            .bind(stage.name())
            .fetch_optional(connection)
            .await?;
    Ok(Some(Position {
        reached: reached.unwrap_or_default().cast_unsigned(),
        head: space.head.cast_unsigned(),
    }))
}

/// Takes a space for one worker.
pub async fn claim(
    connection: &mut SqliteConnection,
    scope: &Scope,
    stage: Stage,
    now: Timestamp,
    until: Timestamp,
) -> Outcome<Option<u64>> {
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(None);
    };
    if stage == Stage::Rebuild && rebuild::find(connection, space.id).await?.is_none() {
        return Ok(None);
    }
    let claimed: Option<(i64, i64)> = sqlx::query_as(
        "INSERT INTO progress (space, stage, reached, leased_until, claims) VALUES (?1, ?2, 0, ?4, 1)
         ON CONFLICT (space, stage) DO UPDATE SET leased_until = excluded.leased_until, claims = claims + 1
             WHERE leased_until IS NULL OR ?3 >= leased_until
                 + iif(claims < ?5, 0, min(?6 << min(claims - ?5, 20), ?7))
         RETURNING reached, claims",
    )
    .bind(space.id)
    .bind(stage.name())
    .bind(now.timestamp_micros())
    .bind(until.timestamp_micros())
    .bind(LOST_CLAIMS)
    .bind(LOST_PAUSE.num_microseconds())
    .bind(LONGEST_LOST_PAUSE.num_microseconds())
    .fetch_optional(connection)
    .await?;
    Ok(claimed.map(|(reached, claims)| {
        note_lost_claims(scope, stage, claims - 1);
        reached.cast_unsigned()
    }))
}

/// Gives it back.
pub async fn release(
    connection: &mut SqliteConnection,
    scope: &Scope,
    stage: Stage,
    until: Timestamp,
) -> Outcome<()> {
    let Some(space) = scope::find(connection, scope).await? else {
        return Ok(());
    };
    sqlx::query(
        "UPDATE progress SET leased_until = NULL, claims = 0 WHERE space = ? AND stage = ? AND leased_until = ?",
    )
    .bind(space.id)
    .bind(stage.name())
    .bind(until.timestamp_micros())
    .execute(connection)
    .await?;
    Ok(())
}

/// Moves on, if the stage stands where the worker believes; whether it did.
pub async fn advance(
    connection: &mut SqliteConnection,
    space: i64,
    progress: Progress,
) -> Outcome<bool> {
    let moved = sqlx::query(
        "UPDATE progress SET reached = ? WHERE space = ? AND stage = ? AND reached = ?",
    )
    .bind(progress.to.cast_signed())
    .bind(space)
    .bind(progress.stage.name())
    .bind(progress.from.cast_signed())
    .execute(connection)
    .await?;
    Ok(moved.rows_affected() == 1)
}
