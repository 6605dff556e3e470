//! Handing out: which rows, and what becomes of a row that cannot be read.

use memfleet_domain::ingestion::Batch;
use memfleet_domain::time::{Clock, SystemClock};
use memfleet_ports::queue::Delivery;
use sqlx::{Row, SqliteConnection};

use crate::failure::Outcome;

/// The oldest free rows that make up about `turns` turns, one at least.
pub async fn choose(
    connection: &mut SqliteConnection,
    held: &str,
    turns: u32,
) -> Outcome<Vec<i64>> {
    Ok(sqlx::query_scalar(
        "SELECT acceptance FROM (
             SELECT acceptance, sum(turns) OVER (ORDER BY acceptance ROWS UNBOUNDED PRECEDING) - turns AS before
             FROM (SELECT acceptance, turns FROM queue
                   WHERE acceptance NOT IN (SELECT value FROM json_each(?1))
                   ORDER BY acceptance LIMIT max(?2, 1)))
         WHERE before = 0 OR before < ?2",
    )
    .bind(held)
    .bind(turns)
    .fetch_all(connection)
    .await?)
}

/// Counts an attempt of the chosen rows and reads them. One that cannot be read is buried: it would stop every tenant.
pub async fn deliver(connection: &mut SqliteConnection, chosen: &str) -> Outcome<Vec<Delivery>> {
    let rows = sqlx::query(
        "UPDATE queue SET attempts = attempts + 1 WHERE acceptance IN (SELECT value FROM json_each(?))
         RETURNING acceptance, attempts, payload",
    )
    .bind(chosen)
    .fetch_all(&mut *connection)
    .await?;
    let mut deliveries = Vec::with_capacity(rows.len());
    for row in &rows {
        let acceptance: i64 = row.try_get(0)?;
        // As bytes: damage may have left text that is no UTF-8.
        match serde_json::from_slice::<Batch>(row.try_get(2)?) {
            Ok(batch) => deliveries.push(Delivery {
                acceptance: acceptance as u64,
                attempt: row.try_get(1)?,
                batch,
            }),
            Err(cause) => bury(connection, acceptance, &cause).await?,
        }
    }
    deliveries.sort_by_key(|delivery| delivery.acceptance);
    Ok(deliveries)
}

/// Takes an attempt back.
pub async fn discount(connection: &mut SqliteConnection, acceptances: &str) -> Outcome<()> {
    sqlx::query(
        "UPDATE queue SET attempts = max(attempts - 1, 0)
         WHERE acceptance IN (SELECT value FROM json_each(?))",
    )
    .bind(acceptances)
    .execute(connection)
    .await?;
    Ok(())
}

/// The payload moves as it is, for a version or a person that can read it. The reason names the place of the damage and
/// not the cause's own words, which may quote what a tenant wrote.
async fn bury(
    connection: &mut SqliteConnection,
    acceptance: i64,
    cause: &serde_json::Error,
) -> Outcome<()> {
    let (category, column) = (cause.classify(), cause.column());
    let reason = format!(
        "PAYLOAD_UNREADABLE: the queued batch cannot be read ({category:?} at byte {column}); it is kept as it was found"
    );
    tracing::error!(acceptance, reason, "dead letter");
    sqlx::query(
        "INSERT OR REPLACE INTO dead_letters (acceptance, space_key, batch, payload, reason, failed_at, attempts)
         SELECT acceptance, space_key, batch, payload, ?2, ?3, attempts FROM queue WHERE acceptance = ?1",
    )
    .bind(acceptance)
    .bind(reason)
    .bind(SystemClock.now().timestamp_micros())
    .execute(&mut *connection)
    .await?;
    sqlx::query("DELETE FROM queue WHERE acceptance = ?")
        .bind(acceptance)
        .execute(connection)
        .await?;
    Ok(())
}
