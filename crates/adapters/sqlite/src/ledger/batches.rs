//! What the ledger remembers of a batch: when it became visible, what it held, and what became of each turn.

use memfleet_columns::{from_receipts, space_key, to_hash, to_receipts};
use memfleet_domain::Scope;
use memfleet_domain::ids::BatchId;
use memfleet_ports::ledger::BatchStatus;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::failure::Outcome;

/// What became of a batch.
pub async fn status(
    connection: &mut SqliteConnection,
    scope: &Scope,
    batch: BatchId,
) -> Outcome<Option<BatchStatus>> {
    let row = sqlx::query(
        "SELECT b.change, b.payload_hash, b.receipts FROM spaces p JOIN batches b ON b.space = p.id
         WHERE p.key = ? AND b.id = ?",
    )
    .bind(space_key(scope))
    .bind(batch.as_bytes().as_slice())
    .fetch_optional(connection)
    .await?;
    row.as_ref().map(read).transpose()
}

/// What became of a batch of the space with this row.
pub async fn find(
    connection: &mut SqliteConnection,
    space: i64,
    batch: BatchId,
) -> Outcome<Option<BatchStatus>> {
    let row = sqlx::query(
        "SELECT change, payload_hash, receipts FROM batches WHERE space = ? AND id = ?",
    )
    .bind(space)
    .bind(batch.as_bytes().as_slice())
    .fetch_optional(connection)
    .await?;
    row.as_ref().map(read).transpose()
}

/// From the columns `change, payload_hash, receipts`.
fn read(row: &SqliteRow) -> Outcome<BatchStatus> {
    let payload_hash = row
        .try_get::<Option<&[u8]>, _>(1)?
        .map(to_hash)
        .transpose()?;
    Ok(BatchStatus {
        change: row.try_get::<i64, _>(0)? as u64,
        payload_hash: payload_hash.map(|hash| hash.0),
        turns: to_receipts(row.try_get(2)?)?,
    })
}

/// Writes the row of a batch anew.
pub async fn put(
    connection: &mut SqliteConnection,
    space: i64,
    batch: BatchId,
    status: &BatchStatus,
) -> Outcome<()> {
    sqlx::query(
        "INSERT OR REPLACE INTO batches (space, id, change, payload_hash, receipts) VALUES (?, ?, ?, ?, ?)",
    )
    .bind(space)
    .bind(batch.as_bytes().as_slice())
    .bind(status.change as i64)
    .bind(status.payload_hash.as_ref().map(<[u8; 32]>::as_slice))
    .bind(from_receipts(&status.turns))
    .execute(connection)
    .await?;
    Ok(())
}
