//! Storing a batch: which turns are new, where they stand in their session, what makes them findable.

mod session;
mod turn;

use std::collections::HashMap;

use memfleet_columns::{Before, Receipts, Verdict, forgotten, stored, to_hash, to_turn_id};
use memfleet_domain::ids::SessionId;
use memfleet_domain::ingestion::TurnReceipt;
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::AcceptedTurn;
use memfleet_ports::ledger::{BatchStatus, Committed, IndexedBatch};
use memfleet_ports::store::StoreError;
use sqlx::{Row, SqliteConnection};

use self::session::OpenSession;
pub(crate) use self::turn::put_passage;
use super::{batches, vectors};
use crate::failure::{Failure, Outcome};
use crate::rows::id_list;
use crate::scope::{self, SpaceRow};
use crate::tombstones;

/// Stores what is new of a batch and answers for each of its turns.
pub async fn commit(connection: &mut SqliteConnection, batch: &IndexedBatch) -> Outcome<Committed> {
    if batch.passages.len() != batch.batch.turns.len() {
        return Err(Failure(StoreError::Unexpected(
            "a batch has not as many lists of passages as turns".into(),
        )));
    }
    let turns = &batch.batch.turns;
    if let Some(space) = scope::find(connection, &batch.batch.scope).await?
        && space.is_erased_since(batch.acceptance as i64)
    {
        return Ok(of_gone_space(space, turns));
    }
    let now = turns
        .first()
        .map_or(Timestamp::UNIX_EPOCH, |turn| turn.recorded_at);
    let space = scope::ensure(connection, &batch.batch.scope, now).await?;
    let known = batches::find(connection, space.id, batch.batch.id).await?;
    let mut committing = Committing {
        before: load(connection, space, turns).await?,
        embedding: match &batch.embedding_space {
            Some(space) => Some(vectors::embedding_space(connection, space).await?),
            None => None,
        },
        acceptance: batch.acceptance as i64,
        language: batch.language.as_deref(),
        sessions: HashMap::new(),
        space,
        connection,
    };
    let mut status = known.clone().unwrap_or_else(|| BatchStatus {
        change: space.head as u64,
        payload_hash: Some(batch.batch.payload_hash().0),
        turns: Vec::with_capacity(turns.len()),
    });
    let mut receipts = Receipts::of(std::mem::take(&mut status.turns));
    for (turn, passages) in turns.iter().zip(&batch.passages) {
        let (ordinal, settled) = receipts.open(turn.id);
        let receipt = match settled {
            Some(settled) => settled,
            None => committing.place(turn, passages, ordinal as u32).await?,
        };
        receipts.give(ordinal, receipt);
    }
    let (all, given) = receipts.close();
    status.turns = all;
    let space_after = committing.finish().await?;
    if known.is_none() || space_after.head != space.head {
        status.change = space_after.head as u64;
    }
    batches::put(connection, space.id, batch.batch.id, &status).await?;
    Ok(Committed {
        change: status.change,
        turns: given,
    })
}

/// What becomes of a batch whose space was forgotten as a whole while it was on its way: no row tells of it, so that the space
/// stays gone and the same batch may come again as new.
fn of_gone_space(space: SpaceRow, turns: &[AcceptedTurn]) -> Committed {
    Committed {
        change: space.head as u64,
        turns: forgotten(turns),
    }
}

async fn load(
    connection: &mut SqliteConnection,
    space: SpaceRow,
    turns: &[AcceptedTurn],
) -> Outcome<Before> {
    let replaced = turns.iter().filter_map(|turn| turn.replaces.as_ref());
    let ids = id_list(turns.iter().map(|turn| &turn.id).chain(replaced));
    let mut before = Before {
        hashes: HashMap::new(),
        forgotten: tombstones::of(connection, space, &ids).await?,
    };
    let rows = sqlx::query(
        "SELECT id, content_hash FROM turns
         WHERE space = ? AND id IN (SELECT unhex(value, '-') FROM json_each(?))",
    );
    for row in rows.bind(space.id).bind(&ids).fetch_all(connection).await? {
        before
            .hashes
            .insert(to_turn_id(row.try_get(0)?)?, to_hash(row.try_get(1)?)?);
    }
    Ok(before)
}

/// A batch on its way into the ledger.
struct Committing<'c> {
    connection: &'c mut SqliteConnection,
    space: SpaceRow,
    embedding: Option<i64>,
    language: Option<&'c str>,
    acceptance: i64,
    before: Before,
    sessions: HashMap<SessionId, OpenSession>,
}

impl Committing<'_> {
    /// Decides about one turn and stores it if it is new.
    async fn place(
        &mut self,
        turn: &AcceptedTurn,
        passages: &[memfleet_ports::ledger::Passage],
        ordinal: u32,
    ) -> Outcome<TurnReceipt> {
        match self.before.judge(turn, self.acceptance) {
            Verdict::Settled(receipt) => Ok(receipt),
            Verdict::New { hash, replaces } => {
                self.store(turn, replaces, passages, ordinal, hash).await?;
                Ok(stored(turn.id))
            }
        }
    }

    /// The next change sequence of the space.
    fn next_change(&mut self) -> i64 {
        self.space.head += 1;
        self.space.head
    }

    /// Writes what the batch changed of its sessions and its space.
    async fn finish(self) -> Outcome<SpaceRow> {
        for session in self.sessions.values() {
            session.save(self.connection).await?;
        }
        sqlx::query(
            "UPDATE spaces SET head = ?, next_passage = ?, language = coalesce(language, ?) WHERE id = ?",
        )
        .bind(self.space.head)
        .bind(self.space.next_passage)
        .bind(self.language)
        .bind(self.space.id)
        .execute(&mut *self.connection)
        .await?;
        Ok(self.space)
    }
}
