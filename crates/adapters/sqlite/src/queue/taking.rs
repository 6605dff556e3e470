//! Handing out: which rows, tenant by tenant, and what becomes of a row that cannot be read.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use memfleet_columns::{time, to_json};
use memfleet_domain::ingestion::Batch;
use memfleet_domain::time::{Clock, SystemClock, Timestamp};
use memfleet_ports::queue::{DeadLetter, Delivery, LetterTally, TOGETHER, TRIES, process_died};
use memfleet_ports::store::StoreError;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};
use tokio::time::Instant;

use super::{letters, remove};
use crate::failure::{Failure, Outcome};

/// What workers hold, and whose turn it was last.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// Deliveries in the hands of workers, by acceptance.
    pub acceptances: BTreeSet<i64>,
    /// Deliveries among these that were postponed, with the instant when they are handed out again.
    postponed: BTreeMap<i64, Instant>,
    last_tenant: String,
    /// By tenant of the last round, the key of its space whose turn it was last.
    last_spaces: HashMap<String, Vec<u8>>,
}

impl Held {
    /// The next rows, and whose turn it was last.
    pub fn note(&mut self, deliveries: &[Delivery], chosen: Chosen) {
        let taken = deliveries.iter();
        self.acceptances
            .extend(taken.map(|delivery| delivery.acceptance as i64));
        self.last_tenant = chosen.last_tenant;
        self.last_spaces = chosen.last_spaces;
    }

    /// Keeps deliveries back until an instant.
    pub fn postpone(&mut self, acceptances: &[u64], due: Instant) {
        let postponed = acceptances.iter().map(|acceptance| *acceptance as i64);
        self.postponed.extend(postponed.map(|one| (one, due)));
    }

    /// Lets go of what was kept back until now.
    pub fn release_due(&mut self, now: Instant) {
        let Self {
            acceptances,
            postponed,
            ..
        } = self;
        postponed.retain(|acceptance, due| {
            let is_kept = *due > now;
            if !is_kept {
                acceptances.remove(acceptance);
            }
            is_kept
        });
    }

    /// When the next of what is kept back is handed out again.
    pub fn next_due(&self) -> Option<Instant> {
        self.postponed.values().min().copied()
    }
}

/// Rows of a tenant that a round chooses from, the oldest ones: a look at all of a long backlog would cost more than the round.
const LOOKED_AT: u32 = 4_096;

/// Bytes of payloads from which on they are read on a thread of their own.
const LARGE_BYTES: usize = 256 << 10;

/// Rows to hand out.
#[derive(Default)]
pub struct Chosen {
    /// By position of acceptance.
    pub acceptances: Vec<i64>,
    /// Tenant of the last row: the next round begins behind it …
    pub last_tenant: String,
    /// … and in each tenant behind the space of its last row.
    pub last_spaces: HashMap<String, Vec<u8>>,
}

/// About `turns` turns of free rows, one row at least: the first of each tenant, then the next of each, and so on. Long turns
/// count by their size: a round of many would hold up all others for minutes. What may have ended processes is alone.
pub async fn choose(connection: &mut SqliteConnection, held: &Held, turns: u32) -> Outcome<Chosen> {
    let taken = to_json(&held.acceptances);
    let mut lines = Vec::new();
    for tenant in tenants_in_turn(connection, &held.last_tenant, &taken, turns).await? {
        let last = held.last_spaces.get(&tenant);
        let last = last.map_or(&[][..], Vec::as_slice);
        let rows = spaces_in_turn(connection, &tenant, last, &taken, turns).await?;
        lines.push((tenant, rows.into_iter()));
    }
    let (mut chosen, mut sum) = (Chosen::default(), 0);
    while !lines.is_empty() {
        let mut waiting = Vec::with_capacity(lines.len());
        for (tenant, mut rows) in lines {
            let Some((acceptance, size, attempts, space)) = rows.next() else {
                continue;
            };
            let is_suspect = attempts >= i64::from(TOGETHER);
            if is_suspect && !chosen.acceptances.is_empty() {
                return Ok(chosen);
            }
            chosen.acceptances.push(acceptance);
            chosen.last_tenant.clone_from(&tenant);
            chosen.last_spaces.insert(tenant.clone(), space);
            sum += size.max(1);
            if is_suspect || sum >= i64::from(turns) {
                return Ok(chosen);
            }
            waiting.push((tenant, rows));
        }
        lines = waiting;
    }
    Ok(chosen)
}

/// Tenants that wait, those behind the last one first; no more than can be served.
async fn tenants_in_turn(
    connection: &mut SqliteConnection,
    last: &str,
    taken: &str,
    turns: u32,
) -> Outcome<Vec<String>> {
    Ok(sqlx::query_scalar(
        "WITH RECURSIVE waiting (tenant) AS (
             SELECT min(tenant) FROM queue
             UNION ALL
             SELECT (SELECT min(q.tenant) FROM queue q WHERE q.tenant > waiting.tenant)
             FROM waiting WHERE waiting.tenant IS NOT NULL)
         SELECT tenant FROM waiting
         WHERE tenant IS NOT NULL AND EXISTS (
             SELECT 1 FROM queue q WHERE q.tenant = waiting.tenant
             AND q.acceptance NOT IN (SELECT value FROM json_each(?2)))
         ORDER BY tenant <= ?1, tenant LIMIT max(?3, 1)",
    )
    .bind(last)
    .bind(taken)
    .bind(turns)
    .fetch_all(connection)
    .await?)
}

/// The tenant's free rows, the oldest of each space first, beginning behind the space that was last, then the next of each, and
/// so on, with their numbers of turns or of KiB, whichever is higher, and of attempts, and their spaces.
async fn spaces_in_turn(
    connection: &mut SqliteConnection,
    tenant: &str,
    last: &[u8],
    taken: &str,
    turns: u32,
) -> Outcome<Vec<(i64, i64, i64, Vec<u8>)>> {
    Ok(sqlx::query_as(
        "SELECT acceptance, max(q.turns, q.bytes / 1024), coalesce(a.attempts, 0), q.space_key FROM (
             SELECT acceptance, row_number() OVER (PARTITION BY space_key ORDER BY acceptance) AS place FROM (
                 SELECT acceptance, space_key FROM queue
                 WHERE tenant = ? AND acceptance NOT IN (SELECT value FROM json_each(?))
                 ORDER BY acceptance LIMIT ?))
         JOIN queue q USING (acceptance) LEFT JOIN queue_attempts a USING (acceptance)
         ORDER BY place, q.space_key <= ?, q.space_key LIMIT max(?, 1)",
    )
    .bind(tenant)
    .bind(taken)
    .bind(LOOKED_AT)
    .bind(last)
    .bind(turns)
    .fetch_all(connection)
    .await?)
}

/// Counts an attempt of each of the chosen rows.
pub async fn count_attempts(connection: &mut SqliteConnection, chosen: &str) -> Outcome<()> {
    sqlx::query(
        "INSERT INTO queue_attempts (acceptance, attempts)
         SELECT acceptance, 1 FROM queue WHERE acceptance IN (SELECT value FROM json_each(?))
         ON CONFLICT (acceptance) DO UPDATE SET attempts = attempts + 1",
    )
    .bind(chosen)
    .execute(connection)
    .await?;
    Ok(())
}

/// A chosen row.
pub struct TakenRow {
    acceptance: i64,
    attempt: u32,
    /// As bytes: damage may have left text that is no UTF-8.
    payload: Vec<u8>,
    accepted_at: Timestamp,
    traceparent: Option<String>,
    request_id: Option<String>,
}

/// The chosen rows, but those that are gone meanwhile.
pub async fn read(connection: &mut SqliteConnection, chosen: &str) -> Outcome<Vec<TakenRow>> {
    let rows = sqlx::query(
        "SELECT acceptance, attempts, CAST(payload AS BLOB), accepted_at, traceparent, request_id
         FROM queued JOIN queue_attempts USING (acceptance)
         WHERE acceptance IN (SELECT value FROM json_each(?)) ORDER BY acceptance",
    )
    .bind(chosen)
    .fetch_all(connection)
    .await?;
    let taken = |row: &SqliteRow| {
        Ok(TakenRow {
            acceptance: row.try_get(0)?,
            attempt: row.try_get(1)?,
            payload: row.try_get(2)?,
            accepted_at: time(row.try_get(3)?)?,
            traceparent: row.try_get(4)?,
            request_id: row.try_get(5)?,
        })
    };
    rows.iter().map(taken).collect()
}

/// A row that is delivered no more, and would stop every tenant.
pub enum SpoiledRow {
    /// It cannot be read.
    Unreadable(i64, serde_json::Error),
    /// It ended every process that tried it.
    Tried(i64, Batch),
}

/// The rows as deliveries, and those that are none. Large ones are read on a thread of their own:
/// they would keep calls waiting.
pub async fn parsed(taken: Vec<TakenRow>) -> Outcome<(Vec<Delivery>, Vec<SpoiledRow>)> {
    if taken.iter().map(|row| row.payload.len()).sum::<usize>() < LARGE_BYTES {
        return Ok(parse(taken));
    }
    let parsing = tokio::task::spawn_blocking(|| parse(taken)).await;
    parsing.map_err(|_| Failure(StoreError::Unexpected("a queued batch was not read".into())))
}

fn parse(taken: Vec<TakenRow>) -> (Vec<Delivery>, Vec<SpoiledRow>) {
    let (mut deliveries, mut spoiled) = (Vec::with_capacity(taken.len()), Vec::new());
    for row in taken {
        match serde_json::from_slice::<Batch>(&row.payload) {
            Ok(batch) if row.attempt > TRIES => {
                spoiled.push(SpoiledRow::Tried(row.acceptance, batch));
            }
            Ok(batch) => deliveries.push(Delivery {
                acceptance: row.acceptance as u64,
                attempt: row.attempt,
                accepted_at: row.accepted_at,
                traceparent: row.traceparent,
                request_id: row.request_id,
                batch,
            }),
            Err(cause) => spoiled.push(SpoiledRow::Unreadable(row.acceptance, cause)),
        }
    }
    (deliveries, spoiled)
}

/// Makes dead letters of rows that are delivered no more.
pub async fn bury(
    connection: &mut SqliteConnection,
    spoiled: Vec<SpoiledRow>,
    letters: &LetterTally,
) -> Outcome<()> {
    for row in spoiled {
        match row {
            SpoiledRow::Unreadable(acceptance, cause) => {
                bury_unreadable(connection, acceptance, &cause, letters).await?;
            }
            SpoiledRow::Tried(acceptance, batch) => {
                bury_tried(connection, acceptance, batch, letters).await?;
            }
        }
    }
    Ok(())
}

/// Takes an attempt back.
pub async fn discount(connection: &mut SqliteConnection, acceptances: &str) -> Outcome<()> {
    sqlx::query(
        "UPDATE queue_attempts SET attempts = max(attempts - 1, 0)
         WHERE acceptance IN (SELECT value FROM json_each(?))",
    )
    .bind(acceptances)
    .execute(connection)
    .await?;
    Ok(())
}

/// Makes a dead letter of a batch that was tried too often, without the turns that were forgotten
/// meanwhile.
async fn bury_tried(
    connection: &mut SqliteConnection,
    acceptance: i64,
    batch: Batch,
    tally: &LetterTally,
) -> Outcome<()> {
    let reason = process_died(TRIES);
    tracing::error!(acceptance, reason, "dead letter");
    let letter = DeadLetter {
        acceptance: acceptance as u64,
        batch,
        reason,
        failed_at: SystemClock.now(),
        attempts: TRIES,
    };
    letters::put(connection, &letter, tally).await?;
    remove(connection, &[letter.acceptance]).await
}

/// The payload moves as it is, for a version or a person that can read it. The reason names the place of the damage and
/// not the cause's own words, which may quote what a tenant wrote.
async fn bury_unreadable(
    connection: &mut SqliteConnection,
    acceptance: i64,
    cause: &serde_json::Error,
    tally: &LetterTally,
) -> Outcome<()> {
    let (category, column) = (cause.classify(), cause.column());
    let reason = format!(
        "PAYLOAD_UNREADABLE: the queued batch cannot be read ({category:?} at byte {column}); it is kept as it was found"
    );
    tracing::error!(acceptance, reason, "dead letter");
    let buried: Option<(String, i64)> = sqlx::query_as(
        "INSERT OR REPLACE INTO dead_letters (acceptance, tenant, space_key, batch, payload, reason, failed_at, attempts, accepted_at)
         SELECT acceptance, tenant, space_key, batch, payload, ?2, ?3, attempts, accepted_at
         FROM queued JOIN queue_attempts USING (acceptance) WHERE acceptance = ?1
         RETURNING tenant, octet_length(payload)",
    )
    .bind(acceptance)
    .bind(reason)
    .bind(SystemClock.now().timestamp_micros())
    .fetch_optional(&mut *connection)
    .await?;
    let Some((tenant, bytes)) = buried else {
        // It was forgotten meanwhile.
        return Ok(());
    };
    letters::bound(connection, &tenant, bytes as u64, tally).await?;
    remove(connection, &[acceptance as u64]).await
}

#[cfg(test)]
mod tests {
    use memfleet_ports::conformance::samples::{
        batch, batch_in, home, instant, scope, turn, turn_in,
    };
    use memfleet_ports::queue::{Bounds, IngestQueue};

    use super::*;
    use crate::store::{Options, SqliteStore};

    #[tokio::test]
    async fn a_space_waits_one_round_for_another_of_its_tenant_whose_batches_fill_a_round() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memfleet.db");
        let store = SqliteStore::open(&path, Options::default()).await.unwrap();
        let other = scope(home().tenant.as_str(), "another");
        for key in ["a", "b", "c"] {
            let turns = (0..50).map(|number| turn(&format!("{key} {number}"), "x"));
            let long = batch(key, turns.collect());
            let published = store.publish(&long, instant(0), Bounds::NONE).await;
            published.unwrap();
        }
        let short = batch_in(&other, "k", vec![turn_in(&other, "s", "k", "x")]);
        let published = store.publish(&short, instant(0), Bounds::NONE).await;
        let short = published.unwrap().acceptance;
        let mut taken = store.take(10).await.unwrap();
        taken.extend(store.take(10).await.unwrap());
        assert!(taken.iter().any(|one| one.acceptance == short), "{taken:?}");
    }

    #[tokio::test]
    async fn a_batch_that_ends_the_process_is_tried_alone_and_then_buried_and_its_neighbours_are_not()
     {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memfleet.db");
        let open = async || SqliteStore::open(&path, Options::default()).await.unwrap();
        let store = open().await;
        let names = ["before", "poison", "behind"];
        for name in names {
            let told = batch(name, vec![turn(name, "x")]);
            let published = store.publish(&told, instant(0), Bounds::NONE).await;
            published.unwrap();
        }
        drop(store);
        let poison = batch("poison", vec![]).id;
        let (mut deaths, mut applied) = (0, Vec::new());
        while applied.len() < 2 {
            let store = open().await;
            let deliveries = store.take(10).await.unwrap();
            assert!(deliveries.len() == 1 || deaths < TOGETHER, "{deliveries:?}");
            if deliveries.iter().any(|one| one.batch.id == poison) {
                deaths += 1;
                continue;
            }
            for one in deliveries {
                applied.push((one.batch.id, one.attempt));
                store.acknowledge(&[one.acceptance]).await.unwrap();
            }
        }
        assert_eq!(deaths, TRIES);
        let id = |name| batch(name, vec![]).id;
        assert_eq!(applied, [(id("before"), 4), (id("behind"), 4)]);
        let letters = open()
            .await
            .dead_letters(&home().tenant, Some(&home().space), 10, None)
            .await
            .unwrap()
            .items;
        assert_eq!(
            (letters.len(), letters[0].batch.id, letters[0].attempts),
            (1, poison, TRIES)
        );
        assert!(letters[0].reason.starts_with("PROCESS_DIED: "));
    }
}
