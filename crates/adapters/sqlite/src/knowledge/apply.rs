//! One transaction of an agent: new versions with what they are found by, the changes that wrote them, conflicts, progress.

use std::collections::{HashMap, HashSet};

use memfleet_columns::{
    LackingVectors, from_kind, from_status, lookup_keys, rest_on, to_change_id, to_derivation_id,
    to_json,
};
use memfleet_domain::Scope;
use memfleet_domain::derivation::{Change, Conflict, Derivation, Status};
use memfleet_domain::ids::{ChangeId, ConflictId, DerivationId, TurnId};
use memfleet_domain::time::Timestamp;
use memfleet_ports::knowledge::{Applied, Revision, Rewrite, Work};
use memfleet_ports::ledger::Passage;
use sqlx::{Row, SqliteConnection};

use super::progress;
use crate::failure::Outcome;
use crate::ledger::vectors;
use crate::passages;
use crate::rows::id_list;
use crate::scope::{self, SpaceRow};

/// Does the work, or says that it is stale; then nothing may be committed.
pub async fn apply(
    connection: &mut SqliteConnection,
    scope: &Scope,
    work: &Work,
) -> Outcome<Applied> {
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(Applied::Stale);
    };
    let mut applying = Applying::new(connection, space);
    if let Some(progress) = work.progress
        && !progress::advance(applying.connection, space.id, progress).await?
    {
        return Ok(Applied::Stale);
    }
    let made = applying.made(&work.rewrites).await?;
    for rewrite in work
        .rewrites
        .iter()
        .filter(|rewrite| !made.contains(&rewrite.change.id))
    {
        if !applying.rewrite(rewrite).await? {
            return Ok(Applied::Stale);
        }
    }
    applying.stage(&work.staging).await?;
    if let Some(change) = &work.publish {
        applying.publish(change).await?;
    }
    for conflict in &work.found {
        applying.find(conflict).await?;
    }
    for (conflict, status) in &work.settled {
        if !applying.settle(*conflict, *status).await? {
            return Ok(Applied::Stale);
        }
    }
    applying.finish().await
}

pub(super) struct Applying<'c> {
    pub(super) connection: &'c mut SqliteConnection,
    pub(super) space: SpaceRow,
    pub(super) unembedded: LackingVectors,
}

impl<'c> Applying<'c> {
    pub(super) fn new(connection: &'c mut SqliteConnection, space: SpaceRow) -> Self {
        Self {
            connection,
            space,
            unembedded: LackingVectors::since(space.head),
        }
    }

    /// Those of the changes that were made before.
    async fn made(&mut self, rewrites: &[Rewrite]) -> Outcome<HashSet<ChangeId>> {
        let ids: Vec<_> = rewrites.iter().map(|rewrite| rewrite.change.id).collect();
        let rows = sqlx::query(
            "SELECT id FROM changes WHERE space = ? AND id IN (SELECT unhex(value, '-') FROM json_each(?))",
        )
        .bind(self.space.id)
        .bind(to_json(&ids))
        .fetch_all(&mut *self.connection)
        .await?;
        let ids = rows.iter().map(|row| Ok(to_change_id(row.try_get(0)?)?));
        ids.collect()
    }

    /// Makes one change; false where it rests on what is no longer so.
    async fn rewrite(&mut self, rewrite: &Rewrite) -> Outcome<bool> {
        let current = self.current(&rewrite.revisions).await?;
        if !rest_on(&rewrite.revisions, &current) || !self.have_turns(&rewrite.revisions).await? {
            return Ok(false);
        }
        let change = &rewrite.change;
        self.record(change).await?;
        for revision in &rewrite.revisions {
            self.write(revision, change.at, change.at).await?;
        }
        Ok(true)
    }

    /// Lists a change, and on the one that it undoes that it is undone. One that is listed already
    /// comes with a history from elsewhere and wrote other derivations too. It takes on what the
    /// history says of it, unless callers decided about one of these, or one was known when a legal
    /// hold began.
    pub(super) async fn record(&mut self, change: &Change) -> Outcome<()> {
        if let Some(reverted) = change.reverts {
            sqlx::query("UPDATE changes SET reverted_by = ? WHERE space = ? AND id = ?")
                .bind(change.id.as_bytes().as_slice())
                .bind(self.space.id)
                .bind(reverted.as_bytes().as_slice())
                .execute(&mut *self.connection)
                .await?;
        }
        sqlx::query(
            "INSERT INTO changes (space, id, document) VALUES (?1, ?2, ?3)
             ON CONFLICT (space, id) DO UPDATE SET document = ?3 WHERE NOT EXISTS (
                 SELECT 1 FROM derivations d JOIN spaces p ON p.id = d.space
                 WHERE d.space = ?1 AND d.written_by = ?2 AND (d.known_from < p.held_since OR EXISTS (
                     SELECT 1 FROM derivations v JOIN changes c ON c.space = v.space AND c.id = v.written_by
                     WHERE v.space = ?1 AND v.id = d.id AND c.document ->> 'kind' IN ('corrected', 'reverted'))))",
        )
            .bind(self.space.id)
            .bind(change.id.as_bytes().as_slice())
            .bind(to_json(change))
            .execute(&mut *self.connection)
            .await?;
        Ok(())
    }

    /// The current version of each.
    async fn current(&mut self, revisions: &[Revision]) -> Outcome<HashMap<DerivationId, u32>> {
        let ids: Vec<_> = revisions
            .iter()
            .map(|revision| revision.derivation.id)
            .collect();
        let rows = sqlx::query(
            "SELECT id, max(version) FROM derivations
             WHERE space = ? AND id IN (SELECT unhex(value, '-') FROM json_each(?)) GROUP BY id",
        )
        .bind(self.space.id)
        .bind(to_json(&ids))
        .fetch_all(&mut *self.connection)
        .await?;
        let current = rows
            .iter()
            .map(|row| Ok((to_derivation_id(row.try_get(0)?)?, row.try_get(1)?)));
        current.collect()
    }

    /// Whether every turn that they come from is there still, and none that states a new fact was replaced.
    async fn have_turns(&mut self, revisions: &[Revision]) -> Outcome<bool> {
        let turns: HashSet<&TurnId> = revisions
            .iter()
            .flat_map(|revision| &revision.derivation.turns)
            .collect();
        let there: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM turns WHERE space = ?1 AND id IN (SELECT unhex(value, '-') FROM json_each(?2))
                 AND (replaced_by IS NULL OR id NOT IN (SELECT unhex(value, '-') FROM json_each(?3)))",
        )
        .bind(self.space.id)
        .bind(id_list(turns.iter().copied()))
        .bind(id_list(revisions.iter().filter_map(Revision::stating)))
        .fetch_one(&mut *self.connection)
        .await?;
        Ok(there == turns.len() as i64)
    }

    /// Writes a version that is known from an instant on; the one before it ends at `ended`.
    pub(super) async fn write(
        &mut self,
        revision: &Revision,
        ended: Timestamp,
        at: Timestamp,
    ) -> Outcome<()> {
        let derivation = &revision.derivation;
        let (first, before) = self.end_current(derivation, ended).await?.unzip();
        let passage = match &revision.passage {
            Some(passage) => self.put(passage).await?,
            None => before.expect("a first version has something to be found by"),
        };
        self.insert(derivation, first, passage, at).await
    }

    /// Stores what a derivation is found by, under the next number of the space.
    pub(super) async fn put(&mut self, passage: &Passage) -> Outcome<i64> {
        let number = self.space.next_passage;
        self.space.next_passage += 1;
        let key = passages::key(self.space.id, number);
        let slot = match &passage.embedding_space {
            Some(space) => {
                let embedding = vectors::embedding_space(self.connection, space).await?;
                self.space.slots.of(embedding)
            }
            None => self.space.slots.served(),
        };
        let given = slot.filter(|_| passage.vectors.is_some());
        self.unembedded.note(self.space.slots, given);
        passages::put(self.connection, &[(key, passage)], slot).await?;
        Ok(i64::from(number))
    }

    /// Writes a version that is current from now on.
    pub(super) async fn insert(
        &mut self,
        derivation: &Derivation,
        first: Option<i64>,
        passage: i64,
        at: Timestamp,
    ) -> Outcome<()> {
        self.space.head += 1;
        let (subject, attribute) = lookup_keys(derivation);
        let micros = |time: Option<Timestamp>| time.map(|time| time.timestamp_micros());
        sqlx::query(
            "INSERT INTO derivations (space, id, version, kind, first, change, written_by, subject, attribute, valid_from, valid_until,
                 known_from, succeeded_by, passage, document) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(self.space.id)
        .bind(derivation.id.as_bytes().as_slice())
        .bind(derivation.version)
        .bind(from_kind(derivation.kind()))
        .bind(first.unwrap_or(self.space.head))
        .bind(self.space.head)
        .bind(derivation.change.as_bytes().as_slice())
        .bind(subject)
        .bind(attribute)
        .bind(micros(derivation.valid.start))
        .bind(micros(derivation.valid.end))
        .bind(at.timestamp_micros())
        .bind(derivation.succeeded_by.as_ref().map(|by| by.as_bytes().as_slice()))
        .bind(passage)
        .bind(to_json(derivation))
        .execute(&mut *self.connection)
        .await?;
        self.trace(derivation).await
    }

    /// Ends the version that is current: when its first one came, and where it is found.
    async fn end_current(
        &mut self,
        derivation: &Derivation,
        at: Timestamp,
    ) -> Outcome<Option<(i64, i64)>> {
        let ended = sqlx::query_as(
            "UPDATE derivations SET known_until = max(known_from, ?) WHERE space = ? AND id = ? AND known_until IS NULL
             RETURNING first, passage",
        );
        Ok(ended
            .bind(at.timestamp_micros())
            .bind(self.space.id)
            .bind(derivation.id.as_bytes().as_slice())
            .fetch_optional(&mut *self.connection)
            .await?)
    }

    /// Notes which turns it draws on.
    pub(super) async fn trace(&mut self, derivation: &Derivation) -> Outcome<()> {
        sqlx::query(
            "INSERT OR IGNORE INTO derivation_turns (space, turn, derivation)
             SELECT ?, unhex(value, '-'), ? FROM json_each(?)",
        )
        .bind(self.space.id)
        .bind(derivation.id.as_bytes().as_slice())
        .bind(id_list(&derivation.turns))
        .execute(&mut *self.connection)
        .await?;
        Ok(())
    }

    pub(super) async fn find(&mut self, conflict: &Conflict) -> Outcome<()> {
        let found = sqlx::query(
            "INSERT INTO conflicts (space, id, older, newer, status, document) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (space, id) DO UPDATE SET older = ?3, newer = ?4, status = ?5, document = ?6
                 WHERE status = ?8 OR (status = ?7 AND ?5 <> ?8)",
        )
        .bind(self.space.id)
        .bind(conflict.id.as_bytes().as_slice())
        .bind(conflict.older.as_bytes().as_slice())
        .bind(conflict.newer.as_bytes().as_slice())
        .bind(from_status(conflict.status))
        .bind(to_json(conflict))
        .bind(from_status(Status::Settled))
        .bind(from_status(Status::Possible))
        .execute(&mut *self.connection)
        .await?;
        self.space.head += i64::from(found.rows_affected() > 0);
        Ok(())
    }

    /// Notes what became of a conflict; false where it was dismissed meanwhile.
    async fn settle(&mut self, conflict: ConflictId, status: Status) -> Outcome<bool> {
        let before: Option<i64> =
            sqlx::query_scalar("SELECT status FROM conflicts WHERE space = ? AND id = ?")
                .bind(self.space.id)
                .bind(conflict.as_bytes().as_slice())
                .fetch_optional(&mut *self.connection)
                .await?;
        if status != Status::Dismissed && before == Some(from_status(Status::Dismissed)) {
            return Ok(false);
        }
        sqlx::query("UPDATE conflicts SET status = ? WHERE space = ? AND id = ?")
            .bind(from_status(status))
            .bind(self.space.id)
            .bind(conflict.as_bytes().as_slice())
            .execute(&mut *self.connection)
            .await?;
        Ok(true)
    }

    pub(super) async fn finish(self) -> Outcome<Applied> {
        sqlx::query(
            "UPDATE spaces SET head = ?, next_passage = ?, embedded = coalesce(embedded, ?),
                 second_embedded = coalesce(second_embedded, ?) WHERE id = ?",
        )
        .bind(self.space.head)
        .bind(self.space.next_passage)
        .bind(self.unembedded.first)
        .bind(self.unembedded.second)
        .bind(self.space.id)
        .execute(self.connection)
        .await?;
        Ok(Applied::Done(self.space.head.cast_unsigned()))
    }
}
