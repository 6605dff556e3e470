//! Writing one turn: its row, its labels, its passages with their vectors, and the end of what it replaces.

use memfleet_columns::{from_role, from_trust, label, some_json};
use memfleet_domain::ids::TurnId;
use memfleet_domain::turn::{AcceptedTurn, ContentHash};
use memfleet_ports::ledger::Passage;
use sqlx::Row;

use super::Committing;
use super::session::OpenSession;
use crate::failure::Outcome;
use crate::passages;

/// Passages that are written together.
const PASSAGES_TOGETHER: usize = 256;

impl<'c> Committing<'c> {
    /// Stores a turn that is new.
    pub(super) async fn store(
        &mut self,
        turn: &AcceptedTurn,
        replaces: Option<TurnId>,
        passages: &'c [Passage],
        ordinal: u32,
        hash: ContentHash,
    ) -> Outcome<()> {
        let replaced = match replaces {
            Some(old) => self.end(old, turn, ordinal).await?,
            None => None,
        };
        if !self.sessions.contains_key(&turn.session) {
            let session = OpenSession::open(self.connection, self.space.id, turn).await?;
            self.sessions.insert(turn.session.clone(), session);
        }
        let session = self
            .sessions
            .get_mut(&turn.session)
            .expect("was just opened");
        let position = session
            .make_room(self.connection, self.acceptance, ordinal, turn.place)
            .await?;
        session.count(turn);
        let session = session.id;
        let change = self.next_change();
        let embedded = passages.iter().all(|passage| passage.vectors.is_some());
        let slots = self.space.slots;
        self.unembedded.note(slots, self.slot.filter(|_| embedded));
        let key = sqlx::query_scalar(
            "INSERT INTO turns (space, id, session, acceptance, ordinal, position, change, external_id, speaker, role, trust,
                 text, media, metadata, event_time, recorded_at, content_hash, replaces, first_passage, passages, embedding,
                 echoes, replaced_by, replaced_at)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING key",
        )
        .bind(self.space.id)
        .bind(turn.id.as_bytes().as_slice())
        .bind(session)
        .bind(self.acceptance)
        .bind(ordinal)
        .bind(position)
        .bind(change)
        .bind(turn.external_id.as_ref().map(memfleet_domain::ids::ExternalId::as_str))
        .bind(turn.speaker.as_str())
        .bind(from_role(turn.role))
        .bind(from_trust(turn.trust))
        .bind(&turn.content.text)
        .bind(some_json(&turn.content.media, turn.content.media.is_empty()))
        .bind(some_json(&turn.metadata, turn.metadata.is_empty()))
        .bind(turn.event_time.map(|time| time.timestamp_micros()))
        .bind(turn.recorded_at.timestamp_micros())
        .bind(hash.0.as_slice())
        .bind(replaces.as_ref().map(|old| old.as_bytes().as_slice()))
        .bind(self.space.next_passage)
        .bind(passages.len() as i64)
        .bind(self.embedding.filter(|_| embedded))
        .bind(some_json(&turn.echoes, turn.echoes.is_empty()))
        .bind(replaced.as_ref().map(|(by, _)| by.as_slice()))
        .bind(replaced.as_ref().map(|(_, at)| *at))
        .fetch_one(&mut *self.connection)
        .await?;
        self.store_labels(key, turn).await?;
        self.store_passages(passages).await?;
        self.revive(turn.id, hash).await
    }

    /// Puts `by` among the versions of the turn that it replaces, in the order of acceptance: the one before it ends, and what
    /// was accepted later and is there already replaces it, by which and when. Where what replaced the one before is forgotten,
    /// that one stays as it is.
    async fn end(
        &mut self,
        old: TurnId,
        by: &AcceptedTurn,
        ordinal: u32,
    ) -> Outcome<Option<(Vec<u8>, i64)>> {
        let row = sqlx::query(
            "WITH RECURSIVE versions(id, next, place) AS (
                 SELECT id, replaced_by, 0 FROM turns WHERE space = ?1 AND id = ?2
                 UNION
                 SELECT n.id, n.replaced_by, v.place + 1
                 FROM versions v JOIN turns n ON n.space = ?1 AND n.id = v.next
                 WHERE (n.acceptance, n.ordinal) < (?3, ?4))
             SELECT v.id, v.next, n.recorded_at FROM versions v
             LEFT JOIN turns n ON n.space = ?1 AND n.id = v.next
             ORDER BY v.place DESC LIMIT 1",
        )
        .bind(self.space.id)
        .bind(old.as_bytes().as_slice())
        .bind(self.acceptance)
        .bind(ordinal)
        .fetch_one(&mut *self.connection)
        .await?;
        let before: Vec<u8> = row.try_get(0)?;
        let next: Option<Vec<u8>> = row.try_get(1)?;
        let next_at: Option<i64> = row.try_get(2)?;
        if next.is_some() && next_at.is_none() {
            return Ok(None);
        }
        let change = self.next_change();
        sqlx::query(
            "UPDATE turns SET change = ?, replaced_by = ?, replaced_at = ? WHERE space = ? AND id = ?",
        )
        .bind(change)
        .bind(by.id.as_bytes().as_slice())
        .bind(by.recorded_at.timestamp_micros())
        .bind(self.space.id)
        .bind(before)
        .execute(&mut *self.connection)
        .await?;
        Ok(next.zip(next_at))
    }

    async fn store_labels(&mut self, key: i64, turn: &AcceptedTurn) -> Outcome<()> {
        for (name, value) in &turn.metadata {
            sqlx::query("INSERT OR IGNORE INTO labels (space, label, turn) VALUES (?, ?, ?)")
                .bind(self.space.id)
                .bind(label(name, value))
                .bind(key)
                .execute(&mut *self.connection)
                .await?;
        }
        Ok(())
    }

    /// Numbers passages, and writes them once there are enough for a statement.
    async fn store_passages(&mut self, passages: &'c [Passage]) -> Outcome<()> {
        for passage in passages {
            let number = self.space.next_passage;
            self.space.next_passage += 1;
            let key = passages::key(self.space.id, number);
            self.passages.push((key, passage));
        }
        if self.passages.len() >= PASSAGES_TOGETHER {
            self.write_passages().await?;
        }
        Ok(())
    }

    /// Writes the passages that were numbered.
    pub(super) async fn write_passages(&mut self) -> Outcome<()> {
        let passages = std::mem::take(&mut self.passages);
        passages::put(self.connection, &passages, self.slot).await
    }

    /// A turn that was forgotten with its whole space and is sent again is a turn like any other.
    async fn revive(&mut self, turn: TurnId, hash: ContentHash) -> Outcome<()> {
        if self.before.stored(turn, hash) {
            sqlx::query("DELETE FROM forgotten WHERE space = ? AND id = ?")
                .bind(self.space.id)
                .bind(turn.as_bytes().as_slice())
                .execute(&mut *self.connection)
                .await?;
        }
        Ok(())
    }
}
