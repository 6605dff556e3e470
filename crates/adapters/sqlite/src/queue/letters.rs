//! Dead letters: what could not be applied, kept until it is replayed or forgotten.

use std::fmt::Write as _;

use memfleet_columns::{
    cut, from_token, json, name, space_key, time, to_batch_id, to_json, to_token,
};
use memfleet_domain::Scope;
use memfleet_domain::ids::{BatchId, SpaceId, TenantId};
use memfleet_domain::ingestion::Batch;
use memfleet_domain::turn::AcceptedTurn;
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::queue::DeadLetter;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::failure::Outcome;
use crate::rows::id_list;
use crate::{scope, scrub, tombstones};

/// Writes a letter of what was not forgotten meanwhile; turns of an earlier letter from the same delivery stay in it.
pub async fn put(connection: &mut SqliteConnection, letter: &DeadLetter) -> Outcome<()> {
    let before: Option<String> =
        sqlx::query_scalar("SELECT payload FROM dead_letters WHERE acceptance = ?")
            .bind(letter.acceptance as i64)
            .fetch_optional(&mut *connection)
            .await?;
    let mut batch = letter.batch.clone();
    retain_unforgotten(connection, &mut batch, letter.acceptance as i64).await?;
    if batch.turns.len() < letter.batch.turns.len() {
        // Their text goes with the delivery, as an ordinary row of the queue.
        scrub::due(connection).await?;
    }
    if batch.turns.is_empty() && !letter.batch.turns.is_empty() {
        return Ok(());
    }
    if let Some(before) = before {
        let mut turns = json::<Batch>(&before)?.turns;
        turns.retain(|turn| !batch.turns.contains(turn));
        batch.turns.splice(0..0, turns);
    }
    sqlx::query(
        "INSERT OR REPLACE INTO dead_letters (acceptance, space_key, batch, payload, reason, failed_at, attempts, tenant, payload_hash, accepted_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8,
             coalesce((SELECT payload_hash FROM queue WHERE acceptance = ?1),
                 (SELECT payload_hash FROM dead_letters WHERE acceptance = ?1)),
             coalesce((SELECT accepted_at FROM queue WHERE acceptance = ?1),
                 (SELECT accepted_at FROM dead_letters WHERE acceptance = ?1)))",
    )
    .bind(letter.acceptance as i64)
    .bind(space_key(&batch.scope))
    .bind(batch.id.as_bytes().as_slice())
    .bind(to_json(&batch))
    .bind(&letter.reason)
    .bind(letter.failed_at.timestamp_micros())
    .bind(letter.attempts)
    .bind(batch.scope.tenant.as_str())
    .execute(connection)
    .await?;
    Ok(())
}

/// Takes out what was forgotten while a worker held it.
async fn retain_unforgotten(
    connection: &mut SqliteConnection,
    batch: &mut Batch,
    acceptance: i64,
) -> Outcome<()> {
    let Some(space) = scope::find(connection, &batch.scope).await? else {
        return Ok(());
    };
    if space.is_erased_since(acceptance) {
        batch.turns.clear();
    }
    let ids = id_list(batch.turns.iter().map(|turn| &turn.id));
    let tombstones = tombstones::of(connection, space, &ids).await?;
    let is_covered = |turn: &AcceptedTurn| {
        let tombstone = tombstones.get(&turn.id);
        tombstone.is_some_and(|tombstone| tombstone.covers(acceptance))
    };
    batch.turns.retain(|turn| !is_covered(turn));
    Ok(())
}

/// Removes the oldest letters of a tenant beyond the `most` youngest.
pub async fn bound(connection: &mut SqliteConnection, tenant: &TenantId, most: u64) -> Outcome<()> {
    let removed = sqlx::query(
        "DELETE FROM dead_letters WHERE acceptance IN (
             SELECT acceptance FROM dead_letters WHERE tenant = ? ORDER BY acceptance DESC LIMIT -1 OFFSET ?)",
    )
    .bind(tenant.as_str())
    .bind(most as i64)
    .execute(&mut *connection)
    .await?
    .rows_affected();
    if removed > 0 {
        // Their text was never stored: a later forget finds nothing of it that would make a scrub due.
        scrub::due(connection).await?;
        tracing::warn!(%tenant, removed, "the oldest dead letters are removed: there are too many");
        metrics::counter!("memfleet_dead_letters_removed_total").increment(removed);
    }
    Ok(())
}

/// A page of the letters of a space, or of a tenant, oldest first.
pub async fn list(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    space: Option<&SpaceId>,
    limit: u32,
    after: Option<&PageToken>,
) -> Outcome<Page<DeadLetter>> {
    let [after] = after.map_or(Ok([i64::MIN]), from_token)?;
    let scope = |space: &SpaceId| Scope {
        tenant: tenant.clone(),
        space: space.clone(),
    };
    let named = space.map(scope);
    let rows = match &named {
        Some(scope) => sqlx::query(
            "SELECT acceptance, payload, reason, failed_at, attempts, batch, space_key FROM dead_letters
             WHERE space_key = ? AND acceptance > ? ORDER BY acceptance LIMIT ?",
        )
        .bind(space_key(scope)),
        None => sqlx::query(
            "SELECT acceptance, payload, reason, failed_at, attempts, batch, space_key FROM dead_letters
             WHERE tenant = ? AND acceptance > ? ORDER BY acceptance LIMIT ?",
        )
        .bind(tenant.as_str()),
    };
    let rows = rows
        .bind(after)
        .bind(i64::from(limit) + 1)
        .fetch_all(connection)
        .await?;
    let read = |row: &SqliteRow| match &named {
        Some(scope) => letter(row, scope),
        None => letter(row, &scope(&hashed(row.try_get(6)?)?)),
    };
    let letters = rows.iter().map(read);
    let letters = letters.collect::<Outcome<Vec<_>>>()?;
    Ok(cut(letters, limit, |letter| {
        to_token([letter.acceptance as i64])
    }))
}

/// The latest letter of a batch.
pub async fn of_batch(
    connection: &mut SqliteConnection,
    scope: &Scope,
    batch: BatchId,
) -> Outcome<Option<DeadLetter>> {
    let row = sqlx::query(
        "SELECT acceptance, payload, reason, failed_at, attempts, batch FROM dead_letters
         WHERE space_key = ? AND batch = ? ORDER BY acceptance DESC LIMIT 1",
    )
    .bind(space_key(scope))
    .bind(batch.as_bytes().as_slice())
    .fetch_optional(connection)
    .await?;
    row.as_ref().map(|row| letter(row, scope)).transpose()
}

/// Stands for the name of a space of which a hash alone is known.
fn hashed(key: &[u8]) -> Outcome<SpaceId> {
    let digits = key.iter().fold(String::new(), |mut digits, byte| {
        write!(digits, "{byte:02x}").expect("a string takes all");
        digits
    });
    Ok(name(SpaceId::new(digits))?)
}

fn letter(row: &SqliteRow, scope: &Scope) -> Outcome<DeadLetter> {
    let batch = match serde_json::from_slice(row.try_get(1)?) {
        Ok(batch) => batch,
        // Buried because nobody can read it (`taking`): what is known is where it belongs.
        Err(_) => Batch {
            id: to_batch_id(row.try_get(5)?)?,
            scope: scope.clone(),
            turns: Vec::new(),
        },
    };
    Ok(DeadLetter {
        acceptance: row.try_get::<i64, _>(0)? as u64,
        batch,
        reason: row.try_get(2)?,
        failed_at: time(row.try_get(3)?)?,
        attempts: row.try_get(4)?,
    })
}

/// Puts letters back into the queue at their old places. One whose batch waits again already (a caller's retry) stays a letter:
/// nothing tells that all its turns are in what waits.
pub async fn replay(
    connection: &mut SqliteConnection,
    scope: &Scope,
    acceptances: &[u64],
) -> Outcome<u64> {
    let rows = sqlx::query(
        "SELECT acceptance, payload, reason, failed_at, attempts, batch, payload_hash, accepted_at FROM dead_letters
         WHERE space_key = ?1 AND (?2 = '[]' OR acceptance IN (SELECT value FROM json_each(?2)))
         ORDER BY acceptance",
    )
    .bind(space_key(scope))
    .bind(to_json(&acceptances))
    .fetch_all(&mut *connection)
    .await?;
    let mut replayed = 0;
    for row in &rows {
        if requeue(connection, scope, row).await? {
            sqlx::query("DELETE FROM dead_letters WHERE acceptance = ?")
                .bind(row.try_get::<i64, _>(0)?)
                .execute(&mut *connection)
                .await?;
            replayed += 1;
        }
    }
    Ok(replayed)
}

/// Whether the letter is in the queue now.
async fn requeue(
    connection: &mut SqliteConnection,
    scope: &Scope,
    row: &SqliteRow,
) -> Outcome<bool> {
    let letter = letter(row, scope)?;
    let batch = &letter.batch;
    // Letters of before it was kept have none.
    let accepted_at: Option<i64> = row.try_get(7)?;
    let accepted_at = accepted_at.unwrap_or(letter.failed_at.timestamp_micros());
    // As bytes: what could not be read is put back as it was found.
    let payload: &[u8] = row.try_get(1)?;
    let inserted = sqlx::query(
        "INSERT OR IGNORE INTO queue (acceptance, tenant, space_key, batch, turns, bytes, accepted_at, payload, payload_hash)
         VALUES (?, ?, ?, ?, ?, ?, ?, CAST(? AS TEXT), ?)",
    )
    .bind(letter.acceptance as i64)
    .bind(batch.scope.tenant.as_str())
    .bind(space_key(&batch.scope))
    .bind(batch.id.as_bytes().as_slice())
    .bind(batch.turns.len() as i64)
    .bind(payload.len() as i64)
    .bind(accepted_at)
    .bind(payload)
    .bind(row.try_get::<Option<&[u8]>, _>(6)?)
    .execute(connection)
    .await?;
    Ok(inserted.rows_affected() > 0)
}

#[cfg(test)]
mod tests {
    use memfleet_ports::conformance::samples::{batch, home, instant, turn};
    use memfleet_ports::queue::{Bounds, IngestQueue};

    use super::*;
    use crate::store::{Options, SqliteStore};

    #[tokio::test]
    async fn the_oldest_letters_of_a_tenant_go_where_there_are_too_many() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memfleet.db");
        let store = SqliteStore::open(path, Options::default()).await.unwrap();
        for name in ["a", "b", "c"] {
            let told = batch(name, vec![turn(name, "x")]);
            let published = store.publish(&told, instant(0), Bounds::NONE).await;
            let letter = DeadLetter {
                acceptance: published.unwrap().acceptance,
                batch: told,
                reason: "POISON".into(),
                failed_at: instant(1),
                attempts: 1,
            };
            store.dead_letter(&letter).await.unwrap();
        }
        let mut write = store.write().await.unwrap();
        let others = TenantId::new("globex").unwrap();
        bound(&mut write, &others, 0).await.unwrap();
        assert!(!scrub::is_due(&mut write).await.unwrap());
        bound(&mut write, &home().tenant, 2).await.unwrap();
        assert!(scrub::is_due(&mut write).await.unwrap());
        let page = list(&mut write, &home().tenant, None, 10, None)
            .await
            .unwrap();
        let left = page.items.iter().map(|letter| letter.batch.id);
        let names = ["b", "c"].map(|name| batch(name, vec![]).id);
        assert_eq!(left.collect::<Vec<_>>(), names);
    }
}
