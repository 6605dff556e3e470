//! What is derived from forgotten turns goes with them: all its versions, what it is found by, conflicts that name it, changes that
//! wrote nothing else. What such a derivation had closed is open again. The space is locked.

use std::collections::BTreeSet;

use memfleet_columns::{from_kind, runs};
use memfleet_domain::Scope;
use memfleet_domain::derivation::Kind;
use memfleet_ports::knowledge::WINDOW;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use super::leftover;
use crate::erasure::Doomed;
use crate::failure::Outcome;
use crate::passages;
use crate::rows::{id_list, to_u32};
use crate::scope::SpaceRow;

/// Removes the derivations that draw on these turns, which are there still; returns the space's change sequence after it.
pub async fn of_turns(
    connection: &mut PgConnection,
    tenant: &str,
    space: SpaceRow,
    doomed: &Doomed,
) -> Outcome<i64> {
    let turns = id_list(doomed.turns.iter().map(|turn| &turn.id));
    let derivations: Vec<Uuid> = sqlx::query_scalar(
        "SELECT DISTINCT derivation FROM derivation_turns WHERE tenant = $1 AND space = $2 AND turn = ANY ($3)",
    )
    .bind(tenant)
    .bind(space.id)
    .bind(&turns)
    .fetch_all(&mut *connection)
    .await?;
    if derivations.is_empty() {
        return Ok(space.head);
    }
    let mut forgetting = Forgetting {
        connection,
        tenant,
        space,
    };
    let neighbours = forgetting.neighbours(&turns, &derivations).await?;
    forgetting.remove_versions(&derivations).await?;
    forgetting.remove_relations(&derivations).await?;
    // Who follows knows the turns of the last version alone, and an earlier one may have drawn on these.
    forgetting.space.head = forgetting.bury(&derivations).await?;
    forgetting.touch(&neighbours).await
}

/// Everything else that agents keep of a space whose turns are forgotten.
pub async fn of_space(connection: &mut PgConnection, scope: &Scope, space: i64) -> Outcome<()> {
    leftover::note(connection, scope, space).await?;
    for delete in [
        "DELETE FROM changes WHERE tenant = $1 AND space = $2",
        "DELETE FROM staged WHERE tenant = $1 AND space = $2",
        "DELETE FROM progress WHERE tenant = $1 AND space = $2",
        "DELETE FROM removed_derivations WHERE tenant = $1 AND space = $2",
    ] {
        sqlx::query(delete)
            .bind(scope.tenant.as_str())
            .bind(space)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// What belonged to versions that are gone.
pub(super) struct Removed {
    pub versions: u64,
    /// Whose versions they were.
    derivations: Vec<Uuid>,
    /// What they were found by.
    pub passages: BTreeSet<u32>,
    /// The changes that wrote them.
    writers: Vec<Uuid>,
}

impl Removed {
    /// From the columns `id, passage, written_by`.
    pub fn of(rows: &[PgRow]) -> Outcome<Self> {
        let mut removed = Self {
            versions: rows.len() as u64,
            derivations: Vec::new(),
            passages: BTreeSet::new(),
            writers: Vec::new(),
        };
        for row in rows {
            removed.derivations.push(row.try_get(0)?);
            removed.passages.insert(to_u32(row.try_get(1)?));
            removed.writers.push(row.try_get(2)?);
        }
        Ok(removed)
    }
}

pub(super) struct Forgetting<'c> {
    pub connection: &'c mut PgConnection,
    pub tenant: &'c str,
    pub space: SpaceRow,
}

impl Forgetting<'_> {
    /// With versions of others that ended because of what goes: those were never written.
    async fn remove_versions(&mut self, doomed: &[Uuid]) -> Outcome<()> {
        let rows = sqlx::query(
            "DELETE FROM derivations WHERE tenant = $1 AND space = $2 AND (id = ANY ($3) OR succeeded_by = ANY ($3))
             RETURNING id, passage, written_by",
        )
        .bind(self.tenant)
        .bind(self.space.id)
        .bind(doomed)
        .fetch_all(&mut *self.connection)
        .await?;
        let mut removed = Removed::of(&rows)?;
        self.lengthen(&removed.derivations).await?;
        self.reopen(&removed.derivations).await?;
        removed.passages.extend(self.remove_staged(doomed).await?);
        self.sweep(removed).await
    }

    /// Passages that no version is found by any more, and changes of which no version is left.
    pub async fn sweep(&mut self, mut removed: Removed) -> Outcome<()> {
        let kept: Vec<i32> = sqlx::query_scalar(
            "SELECT passage FROM derivations WHERE tenant = $1 AND space = $2 AND id = ANY ($3)",
        )
        .bind(self.tenant)
        .bind(self.space.id)
        .bind(&removed.derivations)
        .fetch_all(&mut *self.connection)
        .await?;
        for kept in kept {
            removed.passages.remove(&to_u32(kept));
        }
        let runs = runs(removed.passages.into_iter().map(|number| (number, 1)));
        passages::remove(self.connection, self.tenant, self.space.id, runs).await?;
        sqlx::query(
            "DELETE FROM changes c WHERE tenant = $1 AND space = $2 AND id = ANY ($3) AND NOT EXISTS (
                 SELECT FROM derivations d WHERE d.tenant = $1 AND d.space = $2 AND d.written_by = c.id)",
        )
        .bind(self.tenant)
        .bind(self.space.id)
        .bind(removed.writers)
        .execute(&mut *self.connection)
        .await?;
        Ok(())
    }

    /// What a rebuild noted of these; its passages.
    pub async fn remove_staged(&mut self, doomed: &[Uuid]) -> Outcome<Vec<u32>> {
        let staged: Vec<Option<i32>> = sqlx::query_scalar(
            "DELETE FROM staged WHERE tenant = $1 AND space = $2 AND id = ANY ($3) RETURNING passage",
        )
        .bind(self.tenant)
        .bind(self.space.id)
        .bind(doomed)
        .fetch_all(&mut *self.connection)
        .await?;
        Ok(staged.into_iter().flatten().map(to_u32).collect())
    }

    /// Versions of these derivations that end before the next one came were current until then.
    async fn lengthen(&mut self, ids: &[Uuid]) -> Outcome<()> {
        sqlx::query(
            "UPDATE derivations d SET known_until = later.known_from FROM (
                 SELECT id, version, lead(known_from) OVER (PARTITION BY id ORDER BY version) AS known_from
                 FROM derivations WHERE tenant = $1 AND space = $2 AND id = ANY ($3)) AS later
             WHERE d.tenant = $1 AND d.space = $2 AND d.id = later.id AND d.version = later.version
                 AND d.known_until < later.known_from",
        )
        .bind(self.tenant)
        .bind(self.space.id)
        .bind(ids)
        .execute(&mut *self.connection)
        .await?;
        Ok(())
    }

    /// The last versions that are left are current again. Each has a change number of its own, as pages of changes end between two of them.
    async fn reopen(&mut self, ids: &[Uuid]) -> Outcome<()> {
        if ids.is_empty() {
            return Ok(());
        }
        // An earlier version may have nothing in a place that was filled while a later one was current.
        sqlx::query(
            "UPDATE spaces SET embedded = CASE WHEN embedding IS NULL THEN embedded ELSE coalesce(embedded, $3) END,
                 second_embedded = CASE WHEN second_embedding IS NULL THEN NULL ELSE coalesce(second_embedded, $3) END
             WHERE tenant = $1 AND id = $2",
        )
        .bind(self.tenant)
        .bind(self.space.id)
        .bind(self.space.head)
        .execute(&mut *self.connection)
        .await?;
        let opened = sqlx::query(
            "UPDATE derivations d SET known_until = NULL, change = $4 + latest.number FROM (
                 SELECT id, max(version) AS version, row_number() OVER (ORDER BY min(first), id) AS number
                 FROM derivations WHERE tenant = $1 AND space = $2 AND id = ANY ($3) GROUP BY id) AS latest
             WHERE d.tenant = $1 AND d.space = $2 AND d.id = latest.id AND d.version = latest.version",
        )
        .bind(self.tenant)
        .bind(self.space.id)
        .bind(ids)
        .bind(self.space.head)
        .execute(&mut *self.connection)
        .await?;
        self.space.head += opened.rows_affected() as i64;
        Ok(())
    }

    pub async fn remove_relations(&mut self, doomed: &[Uuid]) -> Outcome<()> {
        for delete in [
            "DELETE FROM conflicts WHERE tenant = $1 AND space = $2 AND (older = ANY ($3) OR newer = ANY ($3))",
            "DELETE FROM derivation_turns WHERE tenant = $1 AND space = $2 AND derivation = ANY ($3)",
        ] {
            sqlx::query(delete)
                .bind(self.tenant)
                .bind(self.space.id)
                .bind(doomed)
                .execute(&mut *self.connection)
                .await?;
        }
        Ok(())
    }

    /// Writes a tombstone each; the answer is the space's change sequence after it.
    pub async fn bury(&mut self, ids: &[Uuid]) -> Outcome<i64> {
        sqlx::query(
            "INSERT INTO removed_derivations (tenant, space, id, change)
             SELECT $1, $2, id, $3 + number FROM unnest($4::uuid[]) WITH ORDINALITY AS gone(id, number)
             ON CONFLICT (tenant, space, id) DO UPDATE SET change = excluded.change",
        )
        .bind(self.tenant)
        .bind(self.space.id)
        .bind(self.space.head)
        .bind(ids)
        .execute(&mut *self.connection)
        .await?;
        Ok(self.space.head + ids.len() as i64)
    }

    /// Turns that stay and may be read otherwise without those that go: those with which something was derived, a story apart, and
    /// the next ones of the session, which were read in their light.
    async fn neighbours(&mut self, gone: &[Uuid], doomed: &[Uuid]) -> Outcome<Vec<Uuid>> {
        let neighbours = sqlx::query_scalar(
            "SELECT turn FROM (
                 SELECT s.turn FROM derivation_turns s WHERE s.tenant = $1 AND s.space = $2 AND s.derivation = ANY ($4)
                     AND NOT EXISTS (SELECT FROM derivations d
                         WHERE d.tenant = $1 AND d.space = $2 AND d.id = s.derivation AND d.kind = $5)
                 UNION
                 SELECT near.id FROM turns g CROSS JOIN LATERAL (
                     SELECT n.id FROM turns n WHERE n.tenant = $1 AND n.space = $2 AND n.session = g.session
                         AND (n.acceptance, n.ordinal) > (g.acceptance, g.ordinal) AND n.replaced_by IS NULL
                     ORDER BY n.acceptance, n.ordinal LIMIT $6) AS near
                 WHERE g.tenant = $1 AND g.space = $2 AND g.id = ANY ($3)) AS near(turn)
             WHERE turn <> ALL ($3)",
        )
        .bind(self.tenant)
        .bind(self.space.id)
        .bind(gone)
        .bind(doomed)
        .bind(from_kind(Kind::Narrative) as i16)
        .bind(i64::from(WINDOW))
        .fetch_all(&mut *self.connection)
        .await?;
        Ok(neighbours)
    }

    /// Has stages read these turns again, and the episodes that hold them, as changes after the head; the change sequence after it. A
    /// rebuild that is under way reads as far.
    async fn touch(&mut self, turns: &[Uuid]) -> Outcome<i64> {
        for touch in [
            "UPDATE turns t SET change = $3 + touched.number
             FROM unnest($4::uuid[]) WITH ORDINALITY AS touched(id, number)
             WHERE t.tenant = $1 AND t.space = $2 AND t.id = touched.id",
            "UPDATE derivations d SET change = $3 + touched.number FROM (
                 SELECT e.id, e.version, row_number() OVER (ORDER BY e.first) FROM derivations e
                 WHERE e.tenant = $1 AND e.space = $2 AND e.kind = 1 AND e.known_until IS NULL AND e.id IN (
                     SELECT s.derivation FROM derivation_turns s WHERE s.tenant = $1 AND s.space = $2 AND s.turn = ANY ($4)))
                 AS touched(id, version, number)
             WHERE d.tenant = $1 AND d.space = $2 AND d.id = touched.id AND d.version = touched.version",
        ] {
            let touched = sqlx::query(touch)
                .bind(self.tenant)
                .bind(self.space.id)
                .bind(self.space.head)
                .bind(turns)
                .execute(&mut *self.connection)
                .await?;
            self.space.head += touched.rows_affected() as i64;
        }
        sqlx::query(
            "UPDATE progress SET goal = greatest(goal, $3) WHERE tenant = $1 AND space = $2 AND goal IS NOT NULL",
        )
        .bind(self.tenant)
        .bind(self.space.id)
        .bind(self.space.head)
        .execute(&mut *self.connection)
        .await?;
        Ok(self.space.head)
    }
}
