//! What a space knows of turns that are about to come.

use std::collections::HashSet;

use memfleet_columns::{Damage, to_turn_id};
use memfleet_domain::Scope;
use memfleet_domain::ids::TurnId;
use memfleet_ports::ledger::Known;
use sqlx::SqliteConnection;

use crate::failure::Outcome;
use crate::rows::id_list;
use crate::scope;

pub async fn known(
    connection: &mut SqliteConnection,
    scope: &Scope,
    ids: &[TurnId],
) -> Outcome<Known> {
    let Some(space) = scope::find(connection, scope).await? else {
        return Ok(Known::default());
    };
    let ids = id_list(ids);
    let stored = "SELECT id FROM turns
        WHERE space = ?1 AND id IN (SELECT unhex(value, '-') FROM json_each(?2))";
    let forgotten =
        "SELECT f.id FROM forgotten f JOIN spaces s ON s.id = f.space AND f.change > s.erased
        WHERE f.space = ?1 AND f.id IN (SELECT unhex(value, '-') FROM json_each(?2))";
    Ok(Known {
        stored: found(connection, stored, space.id, &ids).await?,
        forgotten: found(connection, forgotten, space.id, &ids).await?,
    })
}

async fn found(
    connection: &mut SqliteConnection,
    query: &'static str,
    space: i64,
    ids: &str,
) -> Outcome<HashSet<TurnId>> {
    let rows: Vec<Vec<u8>> = sqlx::query_scalar(query)
        .bind(space)
        .bind(ids)
        .fetch_all(connection)
        .await?;
    let ids: Result<_, Damage> = rows.iter().map(|id| to_turn_id(id)).collect();
    Ok(ids?)
}
