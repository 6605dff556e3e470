//! What is left of turns that were forgotten.

use std::collections::HashMap;

use memfleet_columns::Tombstone;
use memfleet_domain::ids::TurnId;
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use crate::failure::Outcome;
use crate::rows::to_turn_id;

/// The tombstones of those of the turns that have one.
pub async fn of(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    ids: &[Uuid],
) -> Outcome<HashMap<TurnId, Tombstone>> {
    let rows = sqlx::query(
        "SELECT f.id, f.acceptance, f.change <= p.erased
         FROM forgotten f JOIN spaces p ON p.tenant = f.tenant AND p.id = f.space
         WHERE f.tenant = $1 AND f.space = $2 AND f.id = ANY ($3)",
    )
    .bind(tenant)
    .bind(space)
    .bind(ids)
    .fetch_all(connection)
    .await?;
    rows.iter()
        .map(|row| {
            let tombstone = Tombstone {
                last: row.try_get(1)?,
                is_of_space: row.try_get(2)?,
            };
            Ok((to_turn_id(row.try_get(0)?), tombstone))
        })
        .collect()
}
