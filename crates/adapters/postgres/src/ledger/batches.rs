//! What the ledger remembers of a batch: when it became visible, what it held, and what became of each turn.

use std::collections::{HashMap, HashSet};

use futures::TryStreamExt;
use memfleet_columns::{from_receipts, space_key, to_hash, to_receipts};
use memfleet_domain::Scope;
use memfleet_domain::ids::{BatchId, TurnId};
use memfleet_ports::ledger::BatchStatus;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use crate::failure::Outcome;
use crate::rows::{from_batch_id, id_list, to_batch_id};
use crate::scope::space_id;

/// Turns that the server looks for in receipts. Of more, it is faster to read all receipts here, a
/// row at a time.
const FEW: usize = 16;

/// What became of a batch.
pub async fn status(
    connection: &mut PgConnection,
    scope: &Scope,
    batch: BatchId,
) -> Outcome<Option<BatchStatus>> {
    let row = sqlx::query(concat!(
        "SELECT id, change, payload_hash, receipts FROM batches WHERE tenant = $1 AND space = ",
        space_id!(),
        " AND id = $3"
    ))
    .bind(scope.tenant.as_str())
    .bind(space_key(scope))
    .bind(from_batch_id(batch))
    .fetch_optional(connection)
    .await?;
    Ok(row
        .as_ref()
        .map(read)
        .transpose()?
        .map(|(_, status)| status))
}

/// What became of those of the batches that the space knows.
pub async fn of(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    batches: impl Iterator<Item = BatchId>,
) -> Outcome<HashMap<BatchId, BatchStatus>> {
    let rows = sqlx::query(
        "SELECT id, change, payload_hash, receipts FROM batches WHERE tenant = $1 AND space = $2 AND id = ANY ($3)",
    )
    .bind(tenant)
    .bind(space)
    .bind(batches.map(from_batch_id).collect::<Vec<_>>())
    .fetch_all(connection)
    .await?;
    rows.iter().map(read).collect()
}

/// The batches that hold these turns, with what became of them.
pub async fn holding(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    turns: &HashSet<TurnId>,
) -> Outcome<Vec<(BatchId, BatchStatus)>> {
    let are_many = turns.len() > FEW;
    let looked_for = turns.iter().filter(|_| !are_many);
    let mut rows = sqlx::query(
        "SELECT id, change, payload_hash, receipts FROM batches
         WHERE tenant = $1 AND space = $2 AND ($3 OR EXISTS (
             SELECT FROM unnest($4::uuid[]) AS turn(id) WHERE position(uuid_send(turn.id) IN receipts) > 0))",
    )
    .bind(tenant)
    .bind(space)
    .bind(are_many)
    .bind(id_list(looked_for))
    .fetch(connection);
    let mut holding = Vec::new();
    while let Some(row) = rows.try_next().await? {
        let (batch, status) = read(&row)?;
        let holds = status.turns.iter().any(|it| turns.contains(&it.id));
        holding.extend(holds.then_some((batch, status)));
    }
    Ok(holding)
}

fn read(row: &PgRow) -> Outcome<(BatchId, BatchStatus)> {
    let payload_hash = row
        .try_get::<Option<&[u8]>, _>(2)?
        .map(to_hash)
        .transpose()?;
    let status = BatchStatus {
        change: row.try_get::<i64, _>(1)? as u64,
        payload_hash: payload_hash.map(|hash| hash.0),
        turns: to_receipts(row.try_get(3)?)?,
    };
    Ok((to_batch_id(row.try_get(0)?), status))
}

/// Writes the rows of batches anew.
pub async fn put(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    batches: &[(BatchId, BatchStatus)],
) -> Outcome<()> {
    if batches.is_empty() {
        return Ok(());
    }
    let statuses = || batches.iter().map(|(_, status)| status);
    sqlx::query(
        "INSERT INTO batches (tenant, space, id, change, payload_hash, receipts)
         SELECT $1, $2, * FROM unnest($3::uuid[], $4::bigint[], $5::bytea[], $6::bytea[])
         ON CONFLICT (tenant, space, id) DO UPDATE SET
             change = excluded.change, payload_hash = excluded.payload_hash, receipts = excluded.receipts",
    )
    .bind(tenant)
    .bind(space)
    .bind(batches.iter().map(|(id, _)| from_batch_id(*id)).collect::<Vec<_>>())
    .bind(statuses().map(|status| status.change as i64).collect::<Vec<_>>())
    .bind(statuses().map(|status| status.payload_hash.map(Vec::from)).collect::<Vec<_>>())
    .bind(statuses().map(|status| from_receipts(&status.turns)).collect::<Vec<_>>())
    .execute(connection)
    .await?;
    Ok(())
}
