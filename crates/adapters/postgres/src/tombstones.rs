//! What is left of turns that were forgotten.

use std::collections::{BTreeSet, HashMap};

use memfleet_columns::{Tombstone, space_key};
use memfleet_domain::Scope;
use memfleet_domain::ids::{SpaceId, TenantId, TurnId};
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use crate::failure::Outcome;
use crate::rows::{from_turn_id, to_turn_id};

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

/// Looks whether one of these turns was forgotten. No forget of their spaces looks for what names them until the transaction
/// ends: it either comes before and is seen here, or comes after and finds what is written.
pub async fn any(
    connection: &mut PgConnection,
    tenant: &TenantId,
    turns: &[(SpaceId, TurnId)],
) -> Outcome<bool> {
    if turns.is_empty() {
        return Ok(false);
    }
    let keys: Vec<Vec<u8>> = turns.iter().map(|(space, _)| key(tenant, space)).collect();
    let locks: BTreeSet<i64> = keys.iter().map(|key| lock(key)).collect();
    sqlx::query(
        "SELECT pg_advisory_xact_lock_shared(key) FROM unnest($1::bigint[]) AS spaces(key)",
    )
    .bind(locks.into_iter().collect::<Vec<_>>())
    .execute(&mut *connection)
    .await?;
    let any = sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM unnest($2::bytea[], $3::uuid[]) AS named(key, turn)
             JOIN spaces s ON s.tenant = $1 AND s.key = named.key
             JOIN forgotten f ON f.tenant = $1 AND f.space = s.id AND f.id = named.turn)",
    )
    .bind(tenant.as_str())
    .bind(keys)
    .bind(
        turns
            .iter()
            .map(|(_, turn)| from_turn_id(turn))
            .collect::<Vec<_>>(),
    );
    Ok(any.fetch_one(connection).await?)
}

/// Waits for those who are about to name turns of the space ([`any`]), and has others wait until the transaction ends.
pub async fn keep_others(connection: &mut PgConnection, scope: &Scope) -> Outcome<()> {
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(lock(&space_key(scope)))
        .execute(connection)
        .await?;
    Ok(())
}

fn key(tenant: &TenantId, space: &SpaceId) -> Vec<u8> {
    space_key(&Scope {
        tenant: tenant.clone(),
        space: space.clone(),
    })
}

/// The advisory lock of a space. That two spaces may share one costs no more than waiting.
fn lock(key: &[u8]) -> i64 {
    let first = key.first_chunk().expect("the key of a space is a hash");
    i64::from_be_bytes(*first)
}
