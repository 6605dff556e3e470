//! Storing a batch: which turns are new, where they stand in their session, what makes them findable.

mod session;
mod turn;

use std::collections::HashMap;

use memfleet_columns::{
    Before, LackingVectors, Receipts, VectorSlot, Verdict, forgotten, stored, to_hash, to_turn_id,
};
use memfleet_domain::ids::SessionId;
use memfleet_domain::ingestion::{Batch, TurnReceipt};
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::AcceptedTurn;
use memfleet_ports::ledger::{BatchStatus, Committed, IndexedBatch, Passage};
use memfleet_ports::store::StoreError;
use sqlx::{Row, SqliteConnection};

use self::session::OpenSession;
use super::{batches, vectors};
use crate::failure::{Failure, Outcome};
use crate::rows::id_list;
use crate::scope::{self, SpaceRow};
use crate::tombstones;

/// Size of a part: the turns that one transaction stores, one turn at least. Another writer waits
/// for one part at most.
const PART_BYTES: usize = 128 << 10;

/// A batch that is stored part by part, each in a transaction of its own; all but the largest
/// batches have one part. It is settled, and has an answer, once the last one is committed. A
/// delivery that was cut off between two of them is made again, and finds the turns of the first
/// parts stored.
pub struct BatchCommit<'b> {
    batch: &'b IndexedBatch,
    /// Turns that earlier parts stored.
    done: usize,
    /// True once a part changed the space.
    is_changed: bool,
    receipts: Receipts,
}

impl<'b> BatchCommit<'b> {
    /// The commit of this batch, of which no part is stored yet.
    pub fn new(batch: &'b IndexedBatch) -> Outcome<Self> {
        if batch.passages.len() != batch.batch.turns.len() {
            return Err(Failure(StoreError::Unexpected(
                "a batch has not as many lists of passages as turns".into(),
            )));
        }
        Ok(Self {
            batch,
            done: 0,
            is_changed: false,
            receipts: Receipts::default(),
        })
    }

    /// True where this is more than one transaction should store.
    pub fn is_large(&self) -> bool {
        self.next_part() < self.batch.batch.turns.len()
    }

    /// Stores the next part; the answer once there is nothing more.
    pub async fn store_part(
        &mut self,
        connection: &mut SqliteConnection,
    ) -> Outcome<Option<Committed>> {
        let Batch { scope, turns, .. } = &self.batch.batch;
        if let Some(space) = scope::find(connection, scope).await?
            && space.is_erased_since(self.batch.acceptance as i64)
        {
            return Ok(Some(of_gone_space(space, turns)));
        }
        let now = turns
            .first()
            .map_or(Timestamp::UNIX_EPOCH, |turn| turn.recorded_at);
        let before = scope::ensure(connection, scope, now).await?;
        let known = batches::find(connection, before.id, self.batch.batch.id).await?;
        if self.done == 0 {
            let known = known.iter().flat_map(|status| status.turns.clone());
            self.receipts = Receipts::of(known.collect());
        }
        let (begin, end) = (self.done, self.next_part());
        let space = self.place(connection, before, end).await?;
        self.done = end;
        self.is_changed |= space.head != before.head;
        if end < turns.len() {
            return Ok(None);
        }
        if begin > 0 {
            self.note_forgotten(connection, space).await?;
        }
        self.settle(connection, space, known).await.map(Some)
    }

    /// Where the next part ends.
    fn next_part(&self) -> usize {
        let rest = &self.batch.batch.turns[self.done..];
        let mut bytes = 0;
        let fits = |turn: &&AcceptedTurn| {
            bytes += turn.bytes();
            bytes <= PART_BYTES
        };
        let count = rest.iter().take_while(fits).count();
        self.done + count.max(1).min(rest.len())
    }

    /// Stores the turns of a part.
    async fn place(
        &mut self,
        connection: &mut SqliteConnection,
        space: SpaceRow,
        end: usize,
    ) -> Outcome<SpaceRow> {
        let part = self.done..end;
        let turns = &self.batch.batch.turns[part.clone()];
        let mut space = space;
        let embedding = match &self.batch.embedding_space {
            Some(space) => Some(vectors::embedding_space(connection, space).await?),
            None => None,
        };
        let mut committing = Committing {
            before: load(connection, space, turns).await?,
            embedding,
            slot: embedding.and_then(|embedding| space.slots.place(embedding)),
            unembedded: LackingVectors::since(space.head),
            acceptance: self.batch.acceptance as i64,
            language: self.batch.language.as_deref(),
            sessions: HashMap::new(),
            passages: Vec::new(),
            space,
            connection,
        };
        for (turn, passages) in turns.iter().zip(&self.batch.passages[part]) {
            let (ordinal, settled) = self.receipts.open(turn.id);
            let receipt = match settled {
                Some(settled) => settled,
                None => committing.place(turn, passages, ordinal as u32).await?,
            };
            self.receipts.give(ordinal, receipt);
        }
        committing.finish().await
    }

    /// Marks the receipts of what earlier parts stored and was forgotten since.
    async fn note_forgotten(
        &mut self,
        connection: &mut SqliteConnection,
        space: SpaceRow,
    ) -> Outcome<()> {
        let ids = id_list(self.batch.batch.turns.iter().map(|turn| &turn.id));
        let forgotten = tombstones::of(connection, space, &ids).await?;
        self.receipts.forget(|turn| {
            let tombstone = forgotten.get(turn);
            tombstone.is_some_and(|it| it.covers(self.batch.acceptance as i64))
        });
        Ok(())
    }

    /// Writes the row of the batch, by which it is known from now on.
    async fn settle(
        &mut self,
        connection: &mut SqliteConnection,
        space: SpaceRow,
        known: Option<BatchStatus>,
    ) -> Outcome<Committed> {
        let batch = &self.batch.batch;
        let (all, given) = std::mem::take(&mut self.receipts).close();
        let head = space.head as u64;
        let status = match known {
            Some(known) => BatchStatus {
                change: if self.is_changed { head } else { known.change },
                turns: all,
                ..known
            },
            None => BatchStatus {
                change: head,
                payload_hash: Some(batch.payload_hash().0),
                turns: all,
            },
        };
        batches::put(connection, space.id, batch.id, &status).await?;
        Ok(Committed {
            change: status.change,
            turns: given,
        })
    }
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
    /// The place of its vectors.
    slot: Option<VectorSlot>,
    unembedded: LackingVectors,
    language: Option<&'c str>,
    acceptance: i64,
    before: Before,
    sessions: HashMap<SessionId, OpenSession>,
    /// Passages that are numbered and not written yet, by key.
    passages: Vec<(i64, &'c Passage)>,
}

impl<'c> Committing<'c> {
    /// Decides about one turn and stores it if it is new.
    async fn place(
        &mut self,
        turn: &AcceptedTurn,
        passages: &'c [Passage],
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
    async fn finish(mut self) -> Outcome<SpaceRow> {
        self.write_passages().await?;
        for session in self.sessions.values() {
            session.save(self.connection).await?;
        }
        sqlx::query(
            "UPDATE spaces SET head = ?, next_passage = ?, language = coalesce(language, ?), embedding = ?,
                 embedded = coalesce(embedded, ?), second_embedded = coalesce(second_embedded, ?) WHERE id = ?",
        )
        .bind(self.space.head)
        .bind(self.space.next_passage)
        .bind(self.language)
        .bind(self.space.slots.first)
        .bind(self.unembedded.first)
        .bind(self.unembedded.second)
        .bind(self.space.id)
        .execute(&mut *self.connection)
        .await?;
        Ok(self.space)
    }
}

#[cfg(test)]
mod tests;
