//! Histories that callers decided about: which there are, and one in place of what is known.

use memfleet_columns::from_kind;
use memfleet_domain::Scope;
use memfleet_domain::derivation::{Change, Kind};
use memfleet_domain::ids::DerivationId;
use memfleet_ports::knowledge::{Applied, RestoredHistory, Revision, Work};
use memfleet_ports::outbox;
use sqlx::PgConnection;
use uuid::Uuid;

use super::apply::{Applying, Plan, write};
use super::forget::{Forgetting, Removed};
use crate::failure::Outcome;
use crate::rows::{from_derivation_id, id_list, to_derivation_id};
use crate::scope;

/// Facts and namings of which a decision wrote a version, by id.
pub async fn decided(
    connection: &mut PgConnection,
    scope: &Scope,
    limit: u32,
    after: Option<DerivationId>,
) -> Outcome<Vec<DerivationId>> {
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(Vec::new());
    };
    let ids: Vec<Uuid> = sqlx::query_scalar(
        "SELECT DISTINCT d.id FROM changes c
             JOIN derivations d ON d.tenant = c.tenant AND d.space = c.space AND d.written_by = c.id
         WHERE c.tenant = $1 AND c.space = $2 AND c.document::json ->> 'kind' IN ('corrected', 'reverted')
             AND d.kind IN ($3, $4) AND ($5::uuid IS NULL OR d.id > $5)
         ORDER BY d.id LIMIT $6",
    )
    .bind(scope.tenant.as_str())
    .bind(space.id)
    .bind(from_kind(Kind::Fact) as i16)
    .bind(from_kind(Kind::Identity) as i16)
    .bind(after.map(from_derivation_id))
    .bind(i64::from(limit))
    .fetch_all(connection)
    .await?;
    Ok(ids.into_iter().map(to_derivation_id).collect())
}

/// Replaces what is known of a derivation, or says that it is stale; then nothing may be committed.
pub async fn restore(
    connection: &mut PgConnection,
    scope: &Scope,
    restoration: &RestoredHistory,
) -> Outcome<Applied> {
    let space = scope::lock(connection, scope).await?;
    let Some(space) = space.filter(|space| space.is_alive) else {
        return Ok(Applied::Stale);
    };
    let Some(id) = restoration.memory.id() else {
        return Ok(Applied::Stale);
    };
    let mut forgetting = Forgetting {
        connection,
        tenant: scope.tenant.as_str(),
        space,
    };
    if !forgetting.rests_on(id, restoration).await? {
        return Ok(Applied::Stale);
    }
    forgetting.clear(id).await?;
    forgetting.read_again(restoration).await?;
    let after = forgetting.space;
    crate::outbox::note(
        connection,
        scope,
        outbox::Kind::Derived,
        space.head,
        after.head,
    )
    .await?;
    let versions = restoration.memory.versions.iter();
    let history: Vec<(&Change, Revision)> = versions
        .zip(&restoration.passages)
        .map(|(version, passage)| {
            let revision = Revision {
                derivation: version.derivation.clone(),
                passage: passage.clone(),
            };
            (&version.change, revision)
        })
        .collect();
    let mut plan = Plan::new(after, std::collections::HashMap::new());
    plan.restore(&history);
    write(connection, scope.tenant.as_str(), space.id, &plan).await?;
    let work = Work {
        found: restoration.memory.conflicts.clone(),
        ..Work::default()
    };
    let applying = Applying {
        connection,
        scope,
        space: after,
    };
    applying.finish(&work, &plan, space).await
}

impl Forgetting<'_> {
    /// True where the version that goes is the one that is known, and all turns are stored. Refused
    /// where it was known before a legal hold began.
    async fn rests_on(&mut self, id: DerivationId, restoration: &RestoredHistory) -> Outcome<bool> {
        let (known, known_from): (Option<i32>, Option<i64>) = sqlx::query_as(
            "SELECT max(version), min(known_from) FROM derivations WHERE tenant = $1 AND space = $2 AND id = $3",
        )
        .bind(self.tenant)
        .bind(self.space.id)
        .bind(from_derivation_id(id))
        .fetch_one(&mut *self.connection)
        .await?;
        self.space.refuse_hold_since(known_from)?;
        let turns = restoration.memory.turns();
        let stored: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM turns WHERE tenant = $1 AND space = $2 AND id = ANY ($3)",
        )
        .bind(self.tenant)
        .bind(self.space.id)
        .bind(id_list(&turns))
        .fetch_one(&mut *self.connection)
        .await?;
        let known = i64::from(known.unwrap_or(0));
        Ok(known == i64::from(restoration.instead_of) && stored == turns.len() as i64)
    }

    /// Takes out the derivation with what belongs to it.
    async fn clear(&mut self, id: DerivationId) -> Outcome<()> {
        let id = from_derivation_id(id);
        let rows = sqlx::query(
            "DELETE FROM derivations WHERE tenant = $1 AND space = $2 AND id = $3 RETURNING id, passage, written_by",
        )
        .bind(self.tenant)
        .bind(self.space.id)
        .bind(id)
        .fetch_all(&mut *self.connection)
        .await?;
        let mut removed = Removed::of(&rows)?;
        removed.passages.extend(self.remove_staged(&[id]).await?);
        self.sweep(removed).await?;
        self.remove_relations(&[id]).await
    }

    /// Has agents read its turns again: one that read them before the history came may have derived
    /// it, and what is beside it, in a change that counts as made now.
    async fn read_again(&mut self, restoration: &RestoredHistory) -> Outcome<()> {
        let touched = sqlx::query(
            "UPDATE turns t SET change = $3 + touched.number
             FROM unnest($4::uuid[]) WITH ORDINALITY AS touched(id, number)
             WHERE t.tenant = $1 AND t.space = $2 AND t.id = touched.id",
        )
        .bind(self.tenant)
        .bind(self.space.id)
        .bind(self.space.head)
        .bind(id_list(&restoration.memory.turns()))
        .execute(&mut *self.connection)
        .await?;
        self.space.head += touched.rows_affected() as i64;
        Ok(())
    }
}
