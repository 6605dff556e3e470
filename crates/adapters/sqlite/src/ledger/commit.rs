//! Storing a batch: which turns are new, where they stand in their session, what makes them findable.

mod session;
mod turn;

use std::collections::HashMap;

use memfleet_domain::ids::{SessionId, TurnId};
use memfleet_domain::ingestion::{TurnReceipt, TurnState};
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::{AcceptedTurn, ContentHash};
use memfleet_ports::ledger::{BatchStatus, Committed, IndexedBatch};
use memfleet_ports::store::StoreError;
use sqlx::{Row, SqliteConnection};

use self::session::OpenSession;
use super::{batches, vectors};
use crate::codec::{id_list, to_hash, to_id};
use crate::failure::{Failure, Outcome};
use crate::scope::{self, SpaceRow};
use crate::tombstones::{self, Tombstone};

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
        return Ok(forgotten(space, turns));
    }
    let now = turns
        .first()
        .map_or(Timestamp::UNIX_EPOCH, |turn| turn.recorded_at);
    let space = scope::ensure(connection, &batch.batch.scope, now).await?;
    let known = batches::find(connection, space.id, batch.batch.id).await?;
    let mut committing = Committing {
        before: Before::load(connection, space, turns).await?,
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
    let mut receipts = Vec::with_capacity(turns.len());
    for (index, (turn, passages)) in turns.iter().zip(&batch.passages).enumerate() {
        let place = known
            .as_ref()
            .and_then(|known| place_of(&known.turns, index, turn.id));
        let ordinal = place.unwrap_or(status.turns.len());
        let receipt = match place.map(|place| &status.turns[place]) {
            Some(settled) if settled.state != TurnState::DeadLettered => settled.clone(),
            _ => committing.place(turn, passages, ordinal as u32).await?,
        };
        receipts.push(receipt.clone());
        match place {
            Some(place) => status.turns[place] = receipt,
            None => status.turns.push(receipt),
        }
    }
    let space_after = committing.finish().await?;
    if known.is_none() || space_after.head != space.head {
        status.change = space_after.head as u64;
    }
    batches::put(connection, space.id, batch.batch.id, &status).await?;
    Ok(Committed {
        change: status.change,
        turns: receipts,
    })
}

/// What becomes of a batch whose space was forgotten as a whole while it was on its way: no row tells of it, so that the space
/// stays gone and the same batch may come again as new.
fn forgotten(space: SpaceRow, turns: &[AcceptedTurn]) -> Committed {
    let receipt = |turn: &AcceptedTurn| TurnReceipt {
        id: turn.id,
        state: TurnState::Forgotten,
        reason: None,
    };
    Committed {
        change: space.head as u64,
        turns: turns.iter().map(receipt).collect(),
    }
}

/// Which of the receipts of an earlier delivery is this turn's. A replay may bring only some of the turns, and a batch may
/// name a turn twice.
fn place_of(receipts: &[TurnReceipt], index: usize, turn: TurnId) -> Option<usize> {
    match receipts.get(index) {
        Some(receipt) if receipt.id == turn => Some(index),
        _ => receipts.iter().position(|receipt| receipt.id == turn),
    }
}

/// What the ledger knows of the turns of a batch before it is stored.
struct Before {
    hashes: HashMap<TurnId, ContentHash>,
    forgotten: HashMap<TurnId, Tombstone>,
}

impl Before {
    async fn load(
        connection: &mut SqliteConnection,
        space: SpaceRow,
        turns: &[AcceptedTurn],
    ) -> Outcome<Self> {
        let replaced = turns.iter().filter_map(|turn| turn.replaces.as_ref());
        let ids = id_list(turns.iter().map(|turn| &turn.id).chain(replaced));
        let mut before = Self {
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
                .insert(to_id(row.try_get(0)?)?, to_hash(row.try_get(1)?)?);
        }
        Ok(before)
    }
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
        let receipt = |state, reason| TurnReceipt {
            id: turn.id,
            state,
            reason,
        };
        let forgotten = self.before.forgotten.get(&turn.id);
        if forgotten.is_some_and(|tombstone| tombstone.covers(turn, self.acceptance)) {
            return Ok(receipt(TurnState::Forgotten, None));
        }
        let hash = turn.content_hash();
        match self.before.hashes.get(&turn.id) {
            Some(stored) if *stored == hash => return Ok(receipt(TurnState::Stored, None)),
            Some(stored) => {
                let reason = format!(
                    "EXTERNAL_ID_CONFLICT: the external id belongs to a turn with other content (stored {stored}, given {hash})"
                );
                return Ok(receipt(TurnState::DeadLettered, Some(reason)));
            }
            None => {}
        }
        let replaces = match turn.replaces {
            // An edit of a turn that was forgotten stands for itself.
            Some(old)
                if self.before.forgotten.contains_key(&old)
                    && !self.before.hashes.contains_key(&old) =>
            {
                None
            }
            Some(old) if !self.before.hashes.contains_key(&old) => {
                let reason = format!("REPLACED_TURN_UNKNOWN: there is no turn {old} to replace");
                return Ok(receipt(TurnState::DeadLettered, Some(reason)));
            }
            other => other,
        };
        self.store(turn, replaces, passages, ordinal, &hash.0)
            .await?;
        self.before.hashes.insert(turn.id, hash);
        Ok(receipt(TurnState::Stored, None))
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
