//! Dead letters: what could not be applied, kept until it is replayed or forgotten.

use std::collections::HashSet;
use std::fmt::Write as _;

use memfleet_columns::{
    GrowingPage, from_token, json, name, space_key, time, to_batch_id, to_json, to_token,
};
use memfleet_domain::Scope;
use memfleet_domain::ids::{BatchId, SpaceId, TenantId};
use memfleet_domain::ingestion::{Batch, TurnReceipt, TurnState};
use memfleet_domain::turn::AcceptedTurn;
use memfleet_ports::ledger::{BatchStatus, Page, PageToken};
use memfleet_ports::queue::{DeadLetter, LETTER_BYTES, LETTERS, LetterTally};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::failure::Outcome;
use crate::ledger::batches;
use crate::rows::id_list;
use crate::{scope, scrub, tombstones};

/// Writes a letter of what was not forgotten meanwhile; turns of an earlier letter from the same
/// delivery stay in it. Beyond the bounds of its tenant the oldest letters go.
pub async fn put(
    connection: &mut SqliteConnection,
    letter: &DeadLetter,
    tally: &LetterTally,
) -> Outcome<()> {
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
    settle_stored(connection, &mut batch, letter).await?;
    if batch.turns.is_empty() && !letter.batch.turns.is_empty() {
        return Ok(());
    }
    if let Some(before) = before {
        let mut turns = json::<Batch>(&before)?.turns;
        turns.retain(|turn| !batch.turns.contains(turn));
        batch.turns.splice(0..0, turns);
    }
    let payload = to_json(&batch);
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
    .bind(&payload)
    .bind(&letter.reason)
    .bind(letter.failed_at.timestamp_micros())
    .bind(letter.attempts)
    .bind(batch.scope.tenant.as_str())
    .execute(&mut *connection)
    .await?;
    let (tenant, bytes) = (batch.scope.tenant.as_str(), payload.len() as u64);
    bound(connection, tenant, bytes, tally).await
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

/// Takes out the turns of a large batch that were stored before a later part failed, and settles
/// the receipt, which tells them from the others.
async fn settle_stored(
    connection: &mut SqliteConnection,
    batch: &mut Batch,
    letter: &DeadLetter,
) -> Outcome<()> {
    let Some(space) = scope::find(connection, &batch.scope).await? else {
        return Ok(());
    };
    if batches::find(connection, space.id, batch.id)
        .await?
        .is_some()
    {
        return Ok(());
    }
    let stored: Vec<Vec<u8>> =
        sqlx::query_scalar("SELECT id FROM turns WHERE space = ? AND acceptance = ? AND id IN (SELECT unhex(value, '-') FROM json_each(?))")
            .bind(space.id)
            .bind(letter.acceptance as i64)
            .bind(id_list(batch.turns.iter().map(|turn| &turn.id)))
            .fetch_all(&mut *connection)
            .await?;
    if stored.is_empty() {
        return Ok(());
    }
    let stored: HashSet<Vec<u8>> = stored.into_iter().collect();
    let is_stored = |turn: &AcceptedTurn| stored.contains(turn.id.as_bytes().as_slice());
    let receipt = |turn: &AcceptedTurn| {
        let state = match is_stored(turn) {
            true => TurnState::Stored,
            false => TurnState::DeadLettered,
        };
        TurnReceipt {
            id: turn.id,
            state,
            reason: (state == TurnState::DeadLettered).then(|| letter.reason.clone()),
        }
    };
    let status = BatchStatus {
        change: space.head as u64,
        payload_hash: Some(letter.batch.payload_hash().0),
        turns: batch.turns.iter().map(receipt).collect(),
    };
    batches::put(connection, space.id, batch.id, &status).await?;
    batch.turns.retain(|turn| !is_stored(turn));
    Ok(())
}

/// Letters of a tenant beyond the youngest ones, of which there are so many …
const BEYOND_NUMBER: &str =
    "DELETE FROM dead_letters WHERE acceptance IN (
         SELECT acceptance FROM dead_letters WHERE tenant = ? ORDER BY acceptance DESC LIMIT -1 OFFSET ?)";

/// … or that take so many bytes. A letter stays where those younger than it take less.
const BEYOND_BYTES: &str = "DELETE FROM dead_letters WHERE acceptance IN (
         SELECT acceptance FROM (
             SELECT acceptance, sum(octet_length(payload)) OVER (
                 ORDER BY acceptance DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS younger
             FROM dead_letters WHERE tenant = ?)
         WHERE younger >= ?)";

/// Holds the letters of a tenant, which has one of so many bytes more, against the bounds.
pub async fn bound(
    connection: &mut SqliteConnection,
    tenant: &str,
    bytes: u64,
    tally: &LetterTally,
) -> Outcome<()> {
    remove_oldest(connection, BEYOND_NUMBER, tenant, LETTERS).await?;
    if tally.count(tenant, bytes) {
        remove_oldest(connection, BEYOND_BYTES, tenant, LETTER_BYTES).await?;
    }
    Ok(())
}

async fn remove_oldest(
    connection: &mut SqliteConnection,
    beyond: &'static str,
    tenant: &str,
    most: u64,
) -> Outcome<()> {
    let removed = sqlx::query(beyond).bind(tenant).bind(most as i64);
    let removed = removed.execute(&mut *connection).await?.rows_affected();
    if removed > 0 {
        // Their text was never stored: a later forget finds nothing of it that would make a scrub
        // due.
        scrub::due(connection).await?;
        tracing::warn!(
            tenant,
            removed,
            "the oldest dead letters are removed: there are too many, or they are too large"
        );
        metrics::counter!("memfleet_dead_letters_removed_total").increment(removed);
    }
    Ok(())
}

/// A page of the letters of a space, or of a tenant, oldest first. They are read one at a time:
/// each may be as large as a request.
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
    let places = match &named {
        Some(scope) => sqlx::query_scalar(
            "SELECT acceptance FROM dead_letters WHERE space_key = ? AND acceptance > ? ORDER BY acceptance LIMIT ?",
        )
        .bind(space_key(scope)),
        None => sqlx::query_scalar(
            "SELECT acceptance FROM dead_letters WHERE tenant = ? AND acceptance > ? ORDER BY acceptance LIMIT ?",
        )
        .bind(tenant.as_str()),
    };
    let places = places.bind(after).bind(i64::from(limit) + 1);
    let places: Vec<i64> = places.fetch_all(&mut *connection).await?;
    let mut page = GrowingPage::new(limit);
    let mut places = places.into_iter();
    while !page.is_over()
        && let Some(place) = places.next()
    {
        let Some(row) = at(connection, place).await? else {
            continue;
        };
        let letter = match &named {
            Some(scope) => letter(&row, scope),
            None => letter(&row, &scope(&hashed(row.try_get(6)?)?)),
        };
        let bytes = row.try_get::<&[u8], _>(1)?.len();
        page.add(letter?, bytes, to_token([place]));
    }
    Ok(page.done())
}

/// The letter at a position.
async fn at(connection: &mut SqliteConnection, acceptance: i64) -> Outcome<Option<SqliteRow>> {
    let row = sqlx::query(
        "SELECT acceptance, payload, reason, failed_at, attempts, batch, space_key, payload_hash, accepted_at
         FROM dead_letters WHERE acceptance = ?",
    );
    Ok(row.bind(acceptance).fetch_optional(connection).await?)
}

/// Names of the spaces that a tenant has letters of, each from the youngest letter that can be
/// read.
pub async fn spaces(connection: &mut SqliteConnection, tenant: &TenantId) -> Outcome<Vec<SpaceId>> {
    let places: Vec<(Vec<u8>, i64)> = sqlx::query_as(
        "SELECT space_key, acceptance FROM dead_letters WHERE tenant = ? ORDER BY space_key, acceptance DESC",
    )
    .bind(tenant.as_str())
    .fetch_all(&mut *connection)
    .await?;
    let (mut spaces, mut last) = (Vec::new(), None);
    for (key, place) in places {
        if last.as_ref() == Some(&key) {
            continue;
        }
        let row = at(connection, place).await?;
        let payload = row.as_ref().map(|row| row.try_get(1)).transpose()?;
        let batch = payload.and_then(|payload| serde_json::from_slice::<Batch>(payload).ok());
        if let Some(batch) = batch {
            spaces.push(batch.scope.space);
            last = Some(key);
        }
    }
    Ok(spaces)
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
    let places: Vec<i64> = sqlx::query_scalar(
        "SELECT acceptance FROM dead_letters
         WHERE space_key = ?1 AND (?2 = '[]' OR acceptance IN (SELECT value FROM json_each(?2)))
         ORDER BY acceptance",
    )
    .bind(space_key(scope))
    .bind(to_json(&acceptances))
    .fetch_all(&mut *connection)
    .await?;
    let mut replayed = 0;
    for place in places {
        if let Some(row) = at(connection, place).await?
            && requeue(connection, scope, &row).await?
        {
            sqlx::query("DELETE FROM dead_letters WHERE acceptance = ?")
                .bind(place)
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
    let accepted_at: Option<i64> = row.try_get(8)?;
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
    .bind(row.try_get::<Option<&[u8]>, _>(7)?)
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

    /// A store with a letter of 1 KiB for each of three names.
    async fn lettered(directory: &tempfile::TempDir) -> SqliteStore {
        let path = directory.path().join("memfleet.db");
        let store = SqliteStore::open(path, Options::default()).await.unwrap();
        for name in ["a", "b", "c"] {
            let told = batch(name, vec![turn(name, &"x".repeat(1 << 10))]);
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
        store
    }

    #[tokio::test]
    async fn the_oldest_letters_of_a_tenant_go_where_there_are_too_many_or_too_large_ones() {
        let tenant = home().tenant;
        for (beyond, most, left) in [
            (BEYOND_NUMBER, 2, &["b", "c"][..]),
            (BEYOND_BYTES, 1_500, &["b", "c"]),
            (BEYOND_BYTES, 1, &["c"]),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let store = lettered(&directory).await;
            let mut write = store.write().await.unwrap();
            let removed = remove_oldest(&mut write, beyond, "globex", 0).await;
            removed.unwrap();
            let removed = remove_oldest(&mut write, beyond, tenant.as_str(), 1 << 20).await;
            removed.unwrap();
            assert!(!scrub::is_due(&mut write).await.unwrap());
            let removed = remove_oldest(&mut write, beyond, tenant.as_str(), most).await;
            removed.unwrap();
            assert!(scrub::is_due(&mut write).await.unwrap());
            let page = list(&mut write, &tenant, None, 10, None).await.unwrap();
            let found: Vec<_> = page.items.iter().map(|letter| letter.batch.id).collect();
            let left: Vec<_> = left.iter().map(|name| batch(name, vec![]).id).collect();
            assert_eq!(found, left, "{beyond} {most}");
        }
    }
}
