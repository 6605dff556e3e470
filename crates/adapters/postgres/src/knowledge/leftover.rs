//! What a graph beside the store still holds of spaces that were forgotten. The name of such a space stays until the graph is clear of it, and
//! whoever was writing to the graph when it was forgotten is waited for: else it would write after the clearing.

use memfleet_columns::space_key;
use memfleet_domain::Scope;
use memfleet_domain::time::Timestamp;
use memfleet_ports::knowledge::Stage;
use sqlx::{PgConnection, Row};

use super::progress::to_scope;
use crate::failure::Outcome;
use crate::scope::SpaceRow;

/// Notes that a space which is about to be forgotten is in a graph, if any worker ever took it. The space is locked.
pub async fn note(connection: &mut PgConnection, scope: &Scope, space: i64) -> Outcome<()> {
    sqlx::query(
        "UPDATE spaces s SET left_over = $3, left_over_until = greatest(s.left_over_until, p.leased_until)
         FROM (SELECT leased_until FROM progress WHERE tenant = $1 AND space = $2 AND stage = $4
                 AND (reached > 0 OR leased_until IS NOT NULL) FOR UPDATE) p
         WHERE s.tenant = $1 AND s.id = $2",
    )
    .bind(scope.tenant.as_str())
    .bind(space)
    .bind(scope.space.as_str())
    .bind(Stage::Relate.name())
    .execute(connection)
    .await?;
    Ok(())
}

/// Spaces of which something is left.
pub async fn pending(connection: &mut PgConnection, limit: u32) -> Outcome<Vec<Scope>> {
    let rows = sqlx::query("SELECT tenant, name FROM left_over_spaces($1)")
        .bind(i64::from(limit))
        .fetch_all(connection)
        .await?;
    rows.iter().map(to_scope).collect()
}

/// Who has what is left of a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// There is nothing.
    Nothing,
    /// Nobody.
    Free,
    /// Some worker.
    Taken,
}

/// What is left of a space, now.
pub async fn of(
    connection: &mut PgConnection,
    tenant: &str,
    space: SpaceRow,
    now: Timestamp,
) -> Outcome<Left> {
    let row = sqlx::query(
        "SELECT left_over IS NOT NULL, coalesce(left_over_until > $3, false) FROM spaces WHERE tenant = $1 AND id = $2",
    )
    .bind(tenant)
    .bind(space.id)
    .bind(now.timestamp_micros())
    .fetch_one(connection)
    .await?;
    Ok(match (row.try_get(0)?, row.try_get(1)?) {
        (false, _) => Left::Nothing,
        (true, false) => Left::Free,
        (true, true) => Left::Taken,
    })
}

/// Takes it for one worker. The space is locked.
pub async fn take(
    connection: &mut PgConnection,
    tenant: &str,
    space: SpaceRow,
    until: Timestamp,
) -> Outcome<()> {
    sqlx::query("UPDATE spaces SET left_over_until = $3 WHERE tenant = $1 AND id = $2")
        .bind(tenant)
        .bind(space.id)
        .bind(until.timestamp_micros())
        .execute(connection)
        .await?;
    Ok(())
}

/// Gives it back.
pub async fn release(
    connection: &mut PgConnection,
    tenant: &str,
    space: SpaceRow,
    until: Timestamp,
) -> Outcome<()> {
    sqlx::query(
        "UPDATE spaces SET left_over_until = NULL WHERE tenant = $1 AND id = $2 AND left_over_until = $3",
    )
    .bind(tenant)
    .bind(space.id)
    .bind(until.timestamp_micros())
    .execute(connection)
    .await?;
    Ok(())
}

/// Whether there is any.
pub async fn is_there(connection: &mut PgConnection, scope: &Scope) -> Outcome<bool> {
    let is_there = sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM spaces WHERE tenant = $1 AND key = $2 AND left_over IS NOT NULL)",
    );
    let is_there = is_there
        .bind(scope.tenant.as_str())
        .bind(space_key(scope))
        .fetch_one(connection);
    Ok(is_there.await?)
}

/// There is none any more.
pub async fn cleared(connection: &mut PgConnection, scope: &Scope) -> Outcome<()> {
    sqlx::query(
        "UPDATE spaces SET left_over = NULL, left_over_until = NULL WHERE tenant = $1 AND key = $2",
    )
    .bind(scope.tenant.as_str())
    .bind(space_key(scope))
    .execute(connection)
    .await?;
    Ok(())
}
