//! How far an agent is in each space, and whose turn it is. That an agent falls behind is noted by the database itself, with every
//! move of a space's head.

use memfleet_columns::name;
use memfleet_domain::Scope;
use memfleet_domain::ids::{SpaceId, TenantId};
use memfleet_domain::time::Timestamp;
use memfleet_ports::knowledge::{
    LONGEST_LOST_PAUSE, LOST_CLAIMS, LOST_PAUSE, Position, Progress, Stage, note_lost_claims,
};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::leftover::{self, Left};
use crate::failure::Outcome;
use crate::scope::{self, SpaceRow};

/// Spaces whose changes the stage has not worked through: of each tenant the one that waits longest, then the second of each, and so on.
pub async fn pending(
    connection: &mut PgConnection,
    stage: Stage,
    limit: u32,
) -> Outcome<Vec<Scope>> {
    let mut pending = match stage {
        Stage::Relate => leftover::pending(connection, limit).await?,
        _ => Vec::new(),
    };
    for behind in behind(connection, stage, limit).await? {
        if pending.len() < limit as usize && !pending.contains(&behind) {
            pending.push(behind);
        }
    }
    Ok(pending)
}

async fn behind(connection: &mut PgConnection, stage: Stage, limit: u32) -> Outcome<Vec<Scope>> {
    let rows = sqlx::query("SELECT tenant, name FROM spaces_behind($1, $2)")
        .bind(stage.name())
        .bind(i64::from(limit))
        .fetch_all(connection)
        .await?;
    rows.iter().map(to_scope).collect()
}

pub(super) fn to_scope(row: &PgRow) -> Outcome<Scope> {
    Ok(Scope {
        tenant: name(TenantId::new(row.try_get::<&str, _>(0)?))?,
        space: name(SpaceId::new(row.try_get::<&str, _>(1)?))?,
    })
}

/// Where a stage stands.
pub async fn position(
    connection: &mut PgConnection,
    scope: &Scope,
    stage: Stage,
) -> Outcome<Option<Position>> {
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(None);
    };
    let reached: Option<i64> = sqlx::query_scalar(
        "SELECT reached FROM progress WHERE tenant = $1 AND space = $2 AND stage = $3",
    )
    .bind(scope.tenant.as_str())
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
    connection: &mut PgConnection,
    scope: &Scope,
    stage: Stage,
    now: Timestamp,
    until: Timestamp,
) -> Outcome<Option<u64>> {
    let space = match stage {
        // Nobody forgets the space meanwhile without seeing the claim: what this worker reads now it writes to a graph later.
        Stage::Relate => scope::lock(connection, scope).await?,
        _ => scope::find_alive(connection, scope).await?,
    };
    let Some(space) = space else {
        return Ok(None);
    };
    if stage == Stage::Relate {
        let tenant = scope.tenant.as_str();
        match (
            leftover::of(connection, tenant, space, now).await?,
            space.is_alive,
        ) {
            (Left::Nothing | Left::Free, true) => {}
            (Left::Nothing, false) | (Left::Taken, _) => return Ok(None),
            (Left::Free, false) => {
                leftover::take(connection, tenant, space, until).await?;
                return Ok(Some(0));
            }
        }
    }
    // A rebuild is there or not; what follows every space begins by itself.
    let claim = if stage == Stage::Rebuild {
        "UPDATE progress SET leased_until = $5, claims = claims + 1
         WHERE tenant = $1 AND space = $2 AND stage = $3 AND (leased_until IS NULL OR $4 >= leased_until
             + CASE WHEN claims < $6 THEN 0 ELSE least($7 << least(claims - $6, 20)::int, $8) END)
         RETURNING reached, claims"
    } else {
        "INSERT INTO progress AS p (tenant, space, stage, leased_until, claims) VALUES ($1, $2, $3, $5, 1)
         ON CONFLICT (tenant, space, stage) DO UPDATE SET leased_until = excluded.leased_until, claims = p.claims + 1
             WHERE p.leased_until IS NULL OR $4 >= p.leased_until
                 + CASE WHEN p.claims < $6 THEN 0 ELSE least($7 << least(p.claims - $6, 20)::int, $8) END
         RETURNING reached, claims"
    };
    let claimed: Option<(i64, i64)> = sqlx::query_as(claim)
        .bind(scope.tenant.as_str())
        .bind(space.id)
        .bind(stage.name())
        .bind(now.timestamp_micros())
        .bind(until.timestamp_micros())
        .bind(i64::from(LOST_CLAIMS))
        .bind(LOST_PAUSE.num_microseconds())
        .bind(LONGEST_LOST_PAUSE.num_microseconds())
        .fetch_optional(connection)
        .await?;
    Ok(claimed.map(|(reached, claims)| {
        note_lost_claims(scope, stage, claims - 1);
        reached.cast_unsigned()
    }))
}

/// Gives it back. A forget must see that somebody had it, whatever became of what that one did: the instant stays, and is over.
pub async fn release(
    connection: &mut PgConnection,
    scope: &Scope,
    stage: Stage,
    until: Timestamp,
) -> Outcome<()> {
    let Some(space) = scope::find(connection, scope).await? else {
        return Ok(());
    };
    let tenant = scope.tenant.as_str();
    sqlx::query(
        "UPDATE progress SET leased_until = 0, claims = 0 WHERE tenant = $1 AND space = $2 AND stage = $3 AND leased_until = $4",
    )
    .bind(tenant)
    .bind(space.id)
    .bind(stage.name())
    .bind(until.timestamp_micros())
    .execute(&mut *connection)
    .await?;
    if stage == Stage::Relate {
        leftover::release(connection, tenant, space, until).await?;
    }
    Ok(())
}

/// Moves on, if the stage stands where the worker believes; whether it did. The space is locked: its head stays. An agent that is
/// behind still waits after the others.
pub async fn advance(
    connection: &mut PgConnection,
    tenant: &str,
    space: SpaceRow,
    progress: Progress,
) -> Outcome<bool> {
    let moved = sqlx::query(
        "UPDATE progress
         SET reached = $5, behind_since = CASE WHEN $5 < $6 OR goal IS NOT NULL THEN (extract(epoch FROM clock_timestamp()) * 1e6)::bigint END
         WHERE tenant = $1 AND space = $2 AND stage = $3 AND reached = $4",
    )
    .bind(tenant)
    .bind(space.id)
    .bind(progress.stage.name())
    .bind(progress.from.cast_signed())
    .bind(progress.to.cast_signed())
    .bind(space.head)
    .execute(connection)
    .await?;
    Ok(moved.rows_affected() == 1)
}
