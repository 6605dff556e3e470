//! Turns that match while they wait in the queue or lie among the dead letters.

use std::collections::HashSet;

use memfleet_columns::{json, space_key, time, to_batch_id, to_json};
use memfleet_domain::Scope;
use memfleet_domain::ids::TurnId;
use memfleet_domain::ingestion::Batch;
use memfleet_domain::turn::AcceptedTurn;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::undelivered::{Matching, Parted, Unreadable};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::failure::Outcome;

/// The statements on one of the two tables. Rows are read one at a time, for the parting and again for the rewriting: a payload
/// may be as large as a request, and a queue of them larger than memory.
struct Table {
    list: &'static str,
    read: &'static str,
    /// The hash of what was published goes too: it says something about what is gone.
    rewrite: &'static str,
    delete: &'static str,
}

const QUEUE: Table = Table {
    list: "SELECT acceptance FROM queue WHERE space_key = ? ORDER BY acceptance",
    read: "SELECT payload, batch, accepted_at FROM queued WHERE acceptance = ?",
    rewrite: "UPDATE queue SET payload = ?2, parts = NULL, payload_hash = NULL, turns = json_array_length(?2, '$.turns'),
                  bytes = length(CAST(?2 AS BLOB))
              WHERE acceptance = ?1",
    delete: "DELETE FROM queue WHERE acceptance = ?",
};

const LETTERS: Table = Table {
    list: "SELECT acceptance FROM dead_letters WHERE space_key = ? ORDER BY acceptance",
    read: "SELECT payload, batch, failed_at FROM dead_letters WHERE acceptance = ?",
    rewrite: "UPDATE dead_letters SET payload = ?2, payload_hash = NULL WHERE acceptance = ?1",
    delete: "DELETE FROM dead_letters WHERE acceptance = ?",
};

/// The turns that match, or go anyway as they are stored: a batch of which a part is stored is in
/// the queue until its last part is.
pub async fn find(
    connection: &mut SqliteConnection,
    scope: &Scope,
    filter: Option<&TurnFilter>,
    stored: &HashSet<TurnId>,
    unreadable: Unreadable,
) -> Outcome<Matching> {
    let goes = |turn: &AcceptedTurn| {
        filter.is_some_and(|filter| filter.passes(turn)) || stored.contains(&turn.id)
    };
    Ok(Matching {
        queued: QUEUE.part(connection, scope, &goes, unreadable).await?,
        letters: LETTERS.part(connection, scope, &goes, unreadable).await?,
    })
}

/// Takes the turns out of the queue and out of the dead letters.
pub async fn remove(connection: &mut SqliteConnection, undelivered: &Matching) -> Outcome<()> {
    for parted in &undelivered.queued {
        QUEUE.remove(connection, parted).await?;
    }
    for parted in &undelivered.letters {
        LETTERS.remove(connection, parted).await?;
    }
    Ok(())
}

impl Table {
    async fn part(
        &self,
        connection: &mut SqliteConnection,
        scope: &Scope,
        goes: &(impl Fn(&AcceptedTurn) -> bool + Sync),
        unreadable: Unreadable,
    ) -> Outcome<Vec<Parted>> {
        let acceptances: Vec<i64> = sqlx::query_scalar(self.list)
            .bind(space_key(scope))
            .fetch_all(&mut *connection)
            .await?;
        let mut parted = Vec::new();
        for acceptance in acceptances {
            let row = self.read(connection, acceptance).await?;
            parted.extend(part(&row, acceptance, goes, unreadable)?);
        }
        Ok(parted)
    }

    async fn read(&self, connection: &mut SqliteConnection, acceptance: i64) -> Outcome<SqliteRow> {
        Ok(sqlx::query(self.read)
            .bind(acceptance)
            .fetch_one(connection)
            .await?)
    }

    async fn remove(&self, connection: &mut SqliteConnection, parted: &Parted) -> Outcome<()> {
        if parted.is_empty() {
            sqlx::query(self.delete)
                .bind(parted.acceptance as i64)
                .execute(connection)
                .await?;
            return Ok(());
        }
        let row = self.read(connection, parted.acceptance as i64).await?;
        let mut batch: Batch = json(row.try_get(0)?)?;
        batch.turns.retain(|turn| !parted.gone.contains(&turn.id));
        sqlx::query(self.rewrite)
            .bind(parted.acceptance as i64)
            .bind(to_json(&batch))
            .execute(connection)
            .await?;
        Ok(())
    }
}

/// Nothing where no turn of the row goes.
fn part(
    row: &SqliteRow,
    acceptance: i64,
    goes: impl Fn(&AcceptedTurn) -> bool,
    unreadable: Unreadable,
) -> Outcome<Option<Parted>> {
    if let Ok(batch) = serde_json::from_slice::<Batch>(row.try_get(0)?) {
        return Ok(Parted::where_goes(&batch, acceptance as u64, goes));
    }
    let is_gone = unreadable.goes(time(row.try_get(2)?)?);
    let batch = to_batch_id(row.try_get(1)?)?;
    Ok(is_gone.then(|| Parted::unreadable(batch, acceptance as u64)))
}
