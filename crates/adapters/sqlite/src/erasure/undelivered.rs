//! Turns that match while they wait in the queue or lie among the dead letters.

use memfleet_domain::Scope;
use memfleet_domain::ids::{BatchId, TurnId};
use memfleet_domain::ingestion::Batch;
use memfleet_domain::time::Timestamp;
use memfleet_ports::filter::TurnFilter;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::failure::Outcome;
use crate::filter::passes;
use crate::rows::{batch_id, json, time, to_json};
use crate::scope;

/// Rows that hold at least one turn that matches.
pub struct Undelivered {
    pub queued: Vec<Parted>,
    pub letters: Vec<Parted>,
}

/// Which of the rows go that nobody can read.
#[derive(Clone, Copy)]
pub enum Unreadable {
    /// They may hold the very words that are to be forgotten, and must not keep the others from going.
    All,
    /// Those that are from before an instant themselves.
    Before(Timestamp),
}

impl Unreadable {
    fn goes(self, since: Timestamp) -> bool {
        match self {
            Self::All => true,
            Self::Before(instant) => since < instant,
        }
    }
}

/// A batch, and which of its turns go.
pub struct Parted {
    pub acceptance: i64,
    pub batch: BatchId,
    gone: Vec<TurnId>,
    left: usize,
}

impl Parted {
    /// Whether nothing is left of it.
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Whether nobody can tell what it holds.
    pub fn is_unreadable(&self) -> bool {
        self.gone.is_empty()
    }

    /// The turns that go.
    pub fn gone(&self) -> &[TurnId] {
        &self.gone
    }
}

impl Undelivered {
    pub fn is_empty(&self) -> bool {
        self.queued.is_empty() && self.letters.is_empty()
    }

    /// How many turns go.
    pub fn turns(&self) -> u64 {
        self.all().map(|parted| parted.gone.len() as u64).sum()
    }

    /// How many rows go that cannot be read.
    pub fn unreadable(&self) -> u64 {
        self.all().filter(|parted| parted.is_unreadable()).count() as u64
    }

    /// Every row that is touched.
    pub fn all(&self) -> impl Iterator<Item = &Parted> {
        self.queued.iter().chain(&self.letters)
    }
}

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
    read: "SELECT payload, batch, accepted_at FROM queue WHERE acceptance = ?",
    rewrite: "UPDATE queue SET payload = ?2, payload_hash = NULL, turns = json_array_length(?2, '$.turns'),
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

pub async fn find(
    connection: &mut SqliteConnection,
    scope: &Scope,
    filter: &TurnFilter,
    unreadable: Unreadable,
) -> Outcome<Undelivered> {
    Ok(Undelivered {
        queued: QUEUE.part(connection, scope, filter, unreadable).await?,
        letters: LETTERS.part(connection, scope, filter, unreadable).await?,
    })
}

/// Takes the turns out of the queue and out of the dead letters.
pub async fn remove(connection: &mut SqliteConnection, undelivered: &Undelivered) -> Outcome<()> {
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
        filter: &TurnFilter,
        unreadable: Unreadable,
    ) -> Outcome<Vec<Parted>> {
        let acceptances: Vec<i64> = sqlx::query_scalar(self.list)
            .bind(scope::key(scope))
            .fetch_all(&mut *connection)
            .await?;
        let mut parted = Vec::new();
        for acceptance in acceptances {
            let row = self.read(connection, acceptance).await?;
            parted.extend(part(&row, acceptance, filter, unreadable)?);
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
                .bind(parted.acceptance)
                .execute(connection)
                .await?;
            return Ok(());
        }
        let row = self.read(connection, parted.acceptance).await?;
        let mut batch: Batch = json(row.try_get(0)?)?;
        batch.turns.retain(|turn| !parted.gone.contains(&turn.id));
        sqlx::query(self.rewrite)
            .bind(parted.acceptance)
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
    filter: &TurnFilter,
    unreadable: Unreadable,
) -> Outcome<Option<Parted>> {
    let Ok(batch) = serde_json::from_slice::<Batch>(row.try_get(0)?) else {
        let goes = unreadable.goes(time(row.try_get(2)?)?);
        let batch = batch_id(row.try_get(1)?)?;
        return Ok(goes.then_some(Parted {
            acceptance,
            batch,
            gone: Vec::new(),
            left: 0,
        }));
    };
    let going = batch.turns.iter().filter(|turn| passes(filter, turn));
    let gone: Vec<_> = going.map(|turn| turn.id).collect();
    Ok((!gone.is_empty()).then(|| Parted {
        acceptance,
        batch: batch.id,
        left: batch.turns.len() - gone.len(),
        gone,
    }))
}
