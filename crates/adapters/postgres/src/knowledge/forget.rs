//! What is derived from forgotten turns goes with them: all its versions, what it is found by, conflicts that name it, changes that
//! wrote nothing else. What such a derivation had closed is open again. The space is locked.

use std::collections::BTreeSet;

use memfleet_columns::runs;
use memfleet_domain::Scope;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use super::leftover;
use crate::erasure::Doomed;
use crate::failure::Outcome;
use crate::passages;
use crate::rows::{id_list, to_u32};
use crate::scope::SpaceRow;

/// What draws on these turns; the answer is the space's change sequence after it.
pub async fn of_turns(
    connection: &mut PgConnection,
    tenant: &str,
    space: SpaceRow,
    doomed: &Doomed,
) -> Outcome<i64> {
    let derivations: Vec<Uuid> = sqlx::query_scalar(
        "SELECT DISTINCT derivation FROM derivation_turns WHERE tenant = $1 AND space = $2 AND turn = ANY ($3)",
    )
    .bind(tenant)
    .bind(space.id)
    .bind(id_list(doomed.turns.iter().map(|turn| &turn.id)))
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
    forgetting.remove_versions(&derivations).await?;
    forgetting.remove_relations(&derivations).await?;
    forgetting.begin_again(&doomed.thinned).await?;
    // Who follows knows the turns of the last version alone, and an earlier one may have drawn on these.
    forgetting.space.head += 1;
    forgetting.bury(&derivations).await
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

    /// The last versions that are left are current again.
    async fn reopen(&mut self, ids: &[Uuid]) -> Outcome<()> {
        sqlx::query(
            "UPDATE derivations d SET known_until = NULL, change = $4
             FROM (SELECT id, max(version) FROM derivations WHERE tenant = $1 AND space = $2 AND id = ANY ($3) GROUP BY id)
                 AS last(id, version)
             WHERE d.tenant = $1 AND d.space = $2 AND d.id = last.id AND d.version = last.version",
        )
        .bind(self.tenant)
        .bind(self.space.id)
        .bind(ids)
        .bind(self.space.head + 1)
        .execute(&mut *self.connection)
        .await?;
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

    /// Turns that stay, of sessions that lose some, are derived from again: what they shared with the others is gone.
    async fn begin_again(&mut self, sessions: &[i64]) -> Outcome<()> {
        sqlx::query(
            "UPDATE progress SET reached = least(reached, (
                 SELECT min(change) - 1 FROM turns WHERE tenant = $1 AND space = $2 AND session = ANY ($3)))
             WHERE tenant = $1 AND space = $2",
        )
        .bind(self.tenant)
        .bind(self.space.id)
        .bind(sessions)
        .execute(&mut *self.connection)
        .await?;
        Ok(())
    }
}
