//! The deed: rows go, tombstones and receipts without content stay.

use std::collections::HashSet;

use memfleet_columns::{forget, from_receipts, runs, settle, to_json, to_receipts};
use memfleet_domain::Scope;
use memfleet_domain::ids::{BatchId, TurnId};
use memfleet_domain::time::Timestamp;
use memfleet_ports::ledger::BatchStatus;
use sqlx::{QueryBuilder, Row, SqliteConnection};

use super::{Doomed, prompts, undelivered};
use crate::failure::{Outcome, damaged};
use crate::knowledge::forget as knowledge;
use crate::ledger::batches;
use crate::passages::first_key;
use crate::rows::id_list;
use crate::scope::{self, SpaceRow};

/// Turns that are looked for one by one.
const FEW: usize = 16;

pub async fn remove(
    connection: &mut SqliteConnection,
    scope: &Scope,
    doomed: &Doomed,
) -> Outcome<()> {
    let mut space = match doomed.space {
        Some(space) => space,
        // Something waits for a space that has no row yet: its tombstones need one.
        None => unborn(connection, scope).await?,
    };
    space.head = knowledge::of_turns(connection, space, &doomed.keys()).await?;
    remove_turns(connection, space, doomed).await?;
    undelivered::remove(connection, &doomed.undelivered).await?;
    let ids = doomed.ids();
    prompts::of_turns(connection, scope, &id_list(&ids)).await?;
    let last = last_acceptance(connection, doomed).await?;
    let head = bury(connection, space, last, &ids).await?;
    if doomed.everything {
        remove_batches(connection, space.id).await?;
        knowledge::of_space(connection, space.id).await?;
        return remove_space(connection, space.id, Some(last)).await;
    }
    forget_receipts(connection, space.id, &ids).await?;
    settle_queued(connection, space.id, head, doomed).await
}

async fn unborn(connection: &mut SqliteConnection, scope: &Scope) -> Outcome<SpaceRow> {
    if let Some(space) = scope::find(connection, scope).await? {
        return Ok(space);
    }
    let space = scope::ensure(connection, scope, Timestamp::UNIX_EPOCH).await?;
    remove_space(connection, space.id, None).await?;
    Ok(space)
}

async fn remove_turns(
    connection: &mut SqliteConnection,
    space: SpaceRow,
    doomed: &Doomed,
) -> Outcome<()> {
    for (first, end) in runs(
        doomed
            .turns
            .iter()
            .map(|turn| (turn.first_passage, turn.passages)),
    ) {
        for delete in [
            "DELETE FROM passages WHERE key >= ?1 + ?2 AND key < ?1 + ?3",
            "DELETE FROM token_vectors WHERE key >= ?1 + ?2 AND key < ?1 + ?3",
            "DELETE FROM second_vectors WHERE key >= ?1 + ?2 AND key < ?1 + ?3",
        ] {
            sqlx::query(delete)
                .bind(first_key(space.id))
                .bind(first)
                .bind(end)
                .execute(&mut *connection)
                .await?;
        }
    }
    let keys = doomed.keys();
    let edges = count_off(connection, &keys).await?;
    for change in [
        "DELETE FROM labels WHERE space = ?2 AND turn IN (SELECT value FROM json_each(?1))",
        // A newer version that stays must not name what is gone.
        "UPDATE turns SET replaces = NULL WHERE space = ?2 AND replaces IN (
             SELECT id FROM turns WHERE key IN (SELECT value FROM json_each(?1)))",
        "DELETE FROM turns WHERE space = ?2 AND key IN (SELECT value FROM json_each(?1))",
    ] {
        sqlx::query(change)
            .bind(&keys)
            .bind(space.id)
            .execute(&mut *connection)
            .await?;
    }
    sqlx::query(
        "DELETE FROM sessions WHERE id IN (SELECT value FROM json_each(?1))
             AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.session = sessions.id)",
    )
    .bind(to_json(&doomed.sessions))
    .execute(&mut *connection)
    .await?;
    sqlx::query(
        "UPDATE sessions SET
             started_at = (SELECT recorded_at FROM turns t WHERE t.session = sessions.id ORDER BY recorded_at LIMIT 1),
             first_at = (SELECT coalesce(event_time, recorded_at) FROM turns t WHERE t.session = sessions.id
                 ORDER BY coalesce(event_time, recorded_at) LIMIT 1),
             last_at = (SELECT coalesce(event_time, recorded_at) FROM turns t WHERE t.session = sessions.id
                 ORDER BY coalesce(event_time, recorded_at) DESC LIMIT 1)
         WHERE id IN (SELECT value FROM json_each(?1))",
    )
    .bind(to_json(&edges))
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// Takes turns that are about to go (a list of keys) off the numbers of their sessions; the sessions that begin or end with one, whose
/// times have to be looked for among what is left.
async fn count_off(connection: &mut SqliteConnection, keys: &str) -> Outcome<Vec<i64>> {
    let edges = sqlx::query_scalar(
        "SELECT s.id FROM turns t JOIN sessions s ON s.id = t.session WHERE t.key IN (SELECT value FROM json_each(?))
         GROUP BY s.id HAVING min(t.recorded_at) <= s.started_at OR min(coalesce(t.event_time, t.recorded_at)) <= s.first_at
             OR max(coalesce(t.event_time, t.recorded_at)) >= s.last_at",
    )
    .bind(keys)
    .fetch_all(&mut *connection)
    .await?;
    sqlx::query(
        "UPDATE sessions SET turns = turns - gone.number FROM (
             SELECT session, count(*) AS number FROM turns WHERE key IN (SELECT value FROM json_each(?)) GROUP BY session) AS gone
         WHERE sessions.id = gone.session",
    )
    .bind(keys)
    .execute(connection)
    .await?;
    Ok(edges)
}

/// The last position of acceptance that this forget covers: what was given out by now is from before it.
async fn last_acceptance(connection: &mut SqliteConnection, doomed: &Doomed) -> Outcome<i64> {
    let given_out: Option<i64> =
        sqlx::query_scalar("SELECT seq FROM sqlite_sequence WHERE name = 'queue'")
            .fetch_optional(connection)
            .await?;
    let stored = doomed.turns.iter().map(|turn| turn.acceptance);
    let undelivered = doomed
        .undelivered
        .all()
        .map(|parted| parted.acceptance as i64);
    let all = stored.chain(undelivered).chain(given_out);
    Ok(all.max().unwrap_or(0))
}

/// Writes a tombstone a turn, so that indexes let go of it and a delivery that is under way does not bring it back.
/// The answer is the space's change sequence after it.
async fn bury(
    connection: &mut SqliteConnection,
    space: SpaceRow,
    last: i64,
    ids: &HashSet<TurnId>,
) -> Outcome<i64> {
    sqlx::query(
        "INSERT OR REPLACE INTO forgotten (space, id, change, acceptance)
         SELECT ?1, unhex(value, '-'), ?2 + 1 + key, ?3 FROM json_each(?4)",
    )
    .bind(space.id)
    .bind(space.head)
    .bind(last)
    .bind(id_list(ids))
    .execute(&mut *connection)
    .await?;
    let head = space.head + ids.len() as i64;
    sqlx::query("UPDATE spaces SET head = ? WHERE id = ?")
        .bind(head)
        .bind(space.id)
        .execute(connection)
        .await?;
    Ok(head)
}

/// Whoever forgets a whole space and sends its turns again means it: no receipt may say that they are known.
async fn remove_batches(connection: &mut SqliteConnection, space: i64) -> Outcome<()> {
    sqlx::query("DELETE FROM batches WHERE space = ?")
        .bind(space)
        .execute(connection)
        .await?;
    Ok(())
}

/// Batches keep the ids of their turns; the hash of a payload that is gone goes too.
async fn forget_receipts(
    connection: &mut SqliteConnection,
    space: i64,
    ids: &HashSet<TurnId>,
) -> Outcome<()> {
    let mut query = QueryBuilder::new("SELECT id, receipts FROM batches WHERE space = ");
    query.push_bind(space);
    // SQLite looks for a few ids itself, which is ten times as fast as reading all receipts here.
    if ids.len() <= FEW {
        query.push(" AND (false");
        for id in ids {
            let id = id.as_bytes().to_vec();
            query.push(" OR instr(receipts, ").push_bind(id).push(")");
        }
        query.push(")");
    }
    for row in query.build().fetch_all(&mut *connection).await? {
        let mut receipts = to_receipts(row.try_get(1)?)?;
        if forget(&mut receipts, |id| ids.contains(id)) {
            sqlx::query(
                "UPDATE batches SET receipts = ?, payload_hash = NULL WHERE space = ? AND id = ?",
            )
            .bind(from_receipts(&receipts))
            .bind(space)
            .bind(row.try_get::<&[u8], _>(0)?)
            .execute(&mut *connection)
            .await?;
        }
    }
    Ok(())
}

/// A batch of which nothing is left to deliver is settled: whoever waits for it must not wait for ever. One that could not be
/// read is not: sent again, it is stored.
async fn settle_queued(
    connection: &mut SqliteConnection,
    space: i64,
    head: i64,
    doomed: &Doomed,
) -> Outcome<()> {
    let settled = doomed.undelivered.all().filter(|parted| parted.is_empty());
    for parted in settled.filter(|parted| !parted.is_unreadable()) {
        let batch: BatchId = parted.batch;
        let mut status = batches::find(connection, space, batch)
            .await?
            .unwrap_or(BatchStatus {
                change: head as u64,
                payload_hash: None,
                turns: Vec::new(),
            });
        settle(&mut status.turns, &parted.gone);
        batches::put(connection, space, batch, &status).await?;
    }
    Ok(())
}

/// The row stays without names and settings, and with its counters. No delivery from up to `last` stores anything in it.
async fn remove_space(
    connection: &mut SqliteConnection,
    space: i64,
    last: Option<i64>,
) -> Outcome<()> {
    let changed = sqlx::query(
        "UPDATE spaces SET tenant = NULL, name = NULL, language = NULL, settings = '{\"time_zone\":\"UTC\"}', erased = head,
             erased_acceptance = coalesce(?, erased_acceptance), embedding = NULL, second_embedding = NULL, serves_second = 0,
             is_other_whole = 0, embedded = NULL, second_embedded = NULL, emptying = NULL, comparison = NULL,
             language_embedding = NULL
         WHERE id = ?",
    )
    .bind(last)
    .bind(space)
    .execute(connection)
    .await?;
    match changed.rows_affected() {
        1 => Ok(()),
        _ => Err(damaged("the row of a space is gone")),
    }
}
