//! Compare and swap, and what a forget finds an exchange by.

use memfleet_columns::to_json;
use memfleet_domain::ids::{SpaceId, TenantId, TurnId};
use memfleet_ports::exchanges::{Exchange, Kept, Written};
use sqlx::PgConnection;

use super::{kept, select_exchange};
use crate::failure::Outcome;
use crate::rows::from_pairs;
use crate::tombstones;

/// Writes an exchange if nobody did since `expected`, in the transaction of its caller.
pub async fn write(
    connection: &mut PgConnection,
    tenant: &TenantId,
    exchange: &Exchange,
    expected: Option<u64>,
) -> Outcome<Written> {
    let forgotten = tombstones::any(connection, tenant, &exchange.turns).await?;
    let first = Written {
        version: 1,
        forgotten,
    };
    if expected.is_none() && insert(connection, tenant, exchange, first).await? {
        return Ok(first);
    }
    let row = sqlx::query(concat!(select_exchange!(), " FOR UPDATE"))
        .bind(tenant.as_str())
        .bind(exchange.session.as_str())
        .bind(exchange.name.as_str())
        .fetch_optional(&mut *connection)
        .await?;
    let read = |row| kept(row, &exchange.session, &exchange.name);
    let kept = row.as_ref().map(read).transpose()?;
    match exchange.follows(kept.as_ref(), expected)? {
        Some(version) => {
            let written = Written { version, forgotten };
            replace(connection, tenant, exchange, written).await?;
            Ok(written)
        }
        None => Ok(kept.as_ref().map(Kept::written).unwrap_or_default()),
    }
}

/// The columns of an exchange as it is written: without state where that is forgotten.
fn content(exchange: &Exchange, written: Written) -> (&[u8], &[(SpaceId, TurnId)]) {
    match written.forgotten {
        true => (&[], &[]),
        false => (exchange.state.as_bytes(), &exchange.turns),
    }
}

/// Whether there was none. Of two at a time the second waits, and finds one.
async fn insert(
    connection: &mut PgConnection,
    tenant: &TenantId,
    exchange: &Exchange,
    written: Written,
) -> Outcome<bool> {
    let (state, turns) = content(exchange, written);
    let id: Option<i64> = sqlx::query_scalar(
        "INSERT INTO exchanges (tenant, session, name, version, forgotten, state, tokens, turns, updated_at, expires_at, tally)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (tenant, session, name) DO NOTHING RETURNING id",
    )
    .bind(tenant.as_str())
    .bind(exchange.session.as_str())
    .bind(exchange.name.as_str())
    .bind(written.version.cast_signed())
    .bind(written.forgotten)
    .bind(state)
    .bind(i64::from(exchange.tokens))
    .bind(to_json(&turns))
    .bind(exchange.updated_at.timestamp_micros())
    .bind(exchange.expires_at.timestamp_micros())
    .bind(&exchange.tally)
    .fetch_optional(&mut *connection)
    .await?;
    if let Some(id) = id {
        name_turns(connection, tenant, id, turns).await?;
    }
    Ok(id.is_some())
}

/// Writes it in place of what this transaction has locked.
async fn replace(
    connection: &mut PgConnection,
    tenant: &TenantId,
    exchange: &Exchange,
    written: Written,
) -> Outcome<()> {
    let (state, turns) = content(exchange, written);
    let id: i64 = sqlx::query_scalar(
        "UPDATE exchanges SET version = $4, forgotten = $5, state = $6, tokens = $7, turns = $8, updated_at = $9, expires_at = $10, tally = $11
         WHERE tenant = $1 AND session = $2 AND name = $3 RETURNING id",
    )
    .bind(tenant.as_str())
    .bind(exchange.session.as_str())
    .bind(exchange.name.as_str())
    .bind(written.version.cast_signed())
    .bind(written.forgotten)
    .bind(state)
    .bind(i64::from(exchange.tokens))
    .bind(to_json(&turns))
    .bind(exchange.updated_at.timestamp_micros())
    .bind(exchange.expires_at.timestamp_micros())
    .bind(&exchange.tally)
    .fetch_one(&mut *connection)
    .await?;
    sqlx::query("DELETE FROM exchange_turns WHERE tenant = $1 AND exchange = $2")
        .bind(tenant.as_str())
        .bind(id)
        .execute(&mut *connection)
        .await?;
    name_turns(connection, tenant, id, turns).await
}

/// What a forget finds the exchange by.
async fn name_turns(
    connection: &mut PgConnection,
    tenant: &TenantId,
    exchange: i64,
    turns: &[(SpaceId, TurnId)],
) -> Outcome<()> {
    let (spaces, turns) = from_pairs(turns);
    sqlx::query(
        "INSERT INTO exchange_turns (tenant, space, turn, exchange)
         SELECT DISTINCT $1, named.space, named.turn, $2 FROM unnest($3::text[], $4::uuid[]) AS named(space, turn)",
    )
    .bind(tenant.as_str())
    .bind(exchange)
    .bind(spaces)
    .bind(turns)
    .execute(connection)
    .await?;
    Ok(())
}
