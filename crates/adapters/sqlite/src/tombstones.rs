//! What is left of turns that were forgotten.

use std::collections::{BTreeMap, HashMap};

use memfleet_columns::{Tombstone, to_turn_id};
use memfleet_domain::Scope;
use memfleet_domain::ids::{SpaceId, TenantId, TurnId};
use sqlx::{Row, SqliteConnection};

use crate::failure::Outcome;
use crate::rows::id_list;
use crate::scope::{self, SpaceRow};

/// The tombstones of those of the turns (an id list) that have one.
pub async fn of(
    connection: &mut SqliteConnection,
    space: SpaceRow,
    ids: &str,
) -> Outcome<HashMap<TurnId, Tombstone>> {
    let rows = sqlx::query(
        "SELECT f.id, f.acceptance, f.change <= s.erased FROM forgotten f JOIN spaces s ON s.id = f.space
         WHERE f.space = ? AND f.id IN (SELECT unhex(value, '-') FROM json_each(?))",
    )
    .bind(space.id)
    .bind(ids)
    .fetch_all(connection)
    .await?;
    rows.iter()
        .map(|row| {
            let tombstone = Tombstone {
                last: row.try_get(1)?,
                is_of_space: row.try_get(2)?,
            };
            Ok((to_turn_id(row.try_get(0)?)?, tombstone))
        })
        .collect()
}

/// Looks whether one of these turns was forgotten.
pub async fn any(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    turns: &[(SpaceId, TurnId)],
) -> Outcome<bool> {
    let mut by_space: BTreeMap<&SpaceId, Vec<&TurnId>> = BTreeMap::new();
    for (space, turn) in turns {
        by_space.entry(space).or_default().push(turn);
    }
    for (space, turns) in by_space {
        let scope = Scope {
            tenant: tenant.clone(),
            space: space.clone(),
        };
        let Some(space) = scope::find(connection, &scope).await? else {
            continue;
        };
        if !of(connection, space, &id_list(turns)).await?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}
