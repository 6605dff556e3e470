//! Turns that match while they wait in the queue or lie among the dead letters.

use memfleet_domain::Scope;
use memfleet_domain::ids::{BatchId, TurnId};
use memfleet_domain::ingestion::Batch;
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::AcceptedTurn;
use memfleet_ports::filter::TurnFilter;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::failure::Outcome;
use crate::filter::passes;
use crate::rows::{batch_id, time, to_json};
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

/// A batch without the turns that go.
pub struct Parted {
    pub acceptance: i64,
    pub batch: BatchId,
    rest: Batch,
    gone: Vec<TurnId>,
}

impl Parted {
    /// Whether nothing is left of it.
    pub fn is_empty(&self) -> bool {
        self.rest.turns.is_empty()
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

pub async fn find(
    connection: &mut SqliteConnection,
    scope: &Scope,
    filter: &TurnFilter,
    unreadable: Unreadable,
) -> Outcome<Undelivered> {
    let queued = "SELECT acceptance, payload, batch, accepted_at FROM queue WHERE space_key = ?";
    let letters =
        "SELECT acceptance, payload, batch, failed_at FROM dead_letters WHERE space_key = ?";
    Ok(Undelivered {
        queued: part(connection, queued, scope, filter, unreadable).await?,
        letters: part(connection, letters, scope, filter, unreadable).await?,
    })
}

async fn part(
    connection: &mut SqliteConnection,
    query: &'static str,
    scope: &Scope,
    filter: &TurnFilter,
    unreadable: Unreadable,
) -> Outcome<Vec<Parted>> {
    let rows = sqlx::query(query)
        .bind(scope::key(scope))
        .fetch_all(connection)
        .await?;
    let mut parted = Vec::new();
    for row in rows {
        let Ok(batch) = serde_json::from_slice::<Batch>(row.try_get(1)?) else {
            if unreadable.goes(time(row.try_get(3)?)?) {
                parted.push(unread(&row, scope)?);
            }
            continue;
        };
        let (gone, rest): (Vec<AcceptedTurn>, _) = batch
            .turns
            .into_iter()
            .partition(|turn| passes(filter, turn));
        if !gone.is_empty() {
            parted.push(Parted {
                acceptance: row.try_get(0)?,
                batch: batch.id,
                gone: gone.iter().map(|turn| turn.id).collect(),
                rest: Batch {
                    turns: rest,
                    ..batch
                },
            });
        }
    }
    Ok(parted)
}

fn unread(row: &SqliteRow, scope: &Scope) -> Outcome<Parted> {
    let batch = batch_id(row.try_get(2)?)?;
    Ok(Parted {
        acceptance: row.try_get(0)?,
        batch,
        rest: Batch {
            id: batch,
            scope: scope.clone(),
            turns: Vec::new(),
        },
        gone: Vec::new(),
    })
}

/// Takes the turns out of the queue and out of the dead letters.
pub async fn remove(connection: &mut SqliteConnection, undelivered: &Undelivered) -> Outcome<()> {
    for parted in &undelivered.queued {
        // The hash of what was published says something about what is gone.
        let (rewrite, delete) = (
            "UPDATE queue SET payload = ?, turns = ?, bytes = ?, payload_hash = NULL WHERE acceptance = ?",
            "DELETE FROM queue WHERE acceptance = ?",
        );
        if parted.is_empty() {
            sqlx::query(delete)
                .bind(parted.acceptance)
                .execute(&mut *connection)
                .await?;
        } else {
            let payload = to_json(&parted.rest);
            sqlx::query(rewrite)
                .bind(&payload)
                .bind(parted.rest.turns.len() as i64)
                .bind(payload.len() as i64)
                .bind(parted.acceptance)
                .execute(&mut *connection)
                .await?;
        }
    }
    for parted in &undelivered.letters {
        if parted.is_empty() {
            sqlx::query("DELETE FROM dead_letters WHERE acceptance = ?")
                .bind(parted.acceptance)
                .execute(&mut *connection)
                .await?;
        } else {
            sqlx::query(
                "UPDATE dead_letters SET payload = ?, payload_hash = NULL WHERE acceptance = ?",
            )
            .bind(to_json(&parted.rest))
            .bind(parted.acceptance)
            .execute(&mut *connection)
            .await?;
        }
    }
    Ok(())
}
