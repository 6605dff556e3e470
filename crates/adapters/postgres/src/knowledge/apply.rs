//! One transaction of an agent: new versions with what they are found by, the changes that wrote them, conflicts, progress. What is
//! known is loaded, what becomes of it is decided in memory, and what is new is written, as in a commit of turns.

mod plan;
mod write;

pub(super) use self::plan::{Plan, slot};
pub(super) use self::write::{lineage, write};

use std::collections::{HashMap, HashSet};

use memfleet_domain::Scope;
use memfleet_domain::ids::{ChangeId, DerivationId, TurnId};
use memfleet_ports::knowledge::{Applied, Revision, Rewrite, Work};
use memfleet_ports::outbox::Kind;
use sqlx::{PgConnection, Row};

use self::plan::Current;
use super::{progress, rebuild};
use crate::failure::Outcome;
use crate::outbox;
use crate::rows::{
    from_change_id, from_derivation_id, id_list, to_change_id, to_derivation_id, to_u32,
};
use crate::scope::{self, SpaceRow};

/// Does the work, or says that it is stale; then nothing may be committed.
pub async fn apply(connection: &mut PgConnection, scope: &Scope, work: &Work) -> Outcome<Applied> {
    let space = scope::lock(connection, scope).await?;
    let Some(space) = space.filter(|space| space.is_alive) else {
        return Ok(Applied::Stale);
    };
    let mut applying = Applying {
        connection,
        scope,
        space,
    };
    let tenant = scope.tenant.as_str();
    if let Some(progress) = work.progress
        && !progress::advance(applying.connection, tenant, space, progress).await?
    {
        return Ok(Applied::Stale);
    }
    rebuild::stage(
        applying.connection,
        tenant,
        &mut applying.space,
        &work.staging,
    )
    .await?;
    if write::are_dismissed(applying.connection, tenant, space.id, &work.settled).await? {
        return Ok(Applied::Stale);
    }
    let Some(mut plan) = applying.plan(&work.rewrites).await? else {
        return Ok(Applied::Stale);
    };
    let published;
    if let Some(change) = &work.publish {
        published = rebuild::end(applying.connection, tenant, space.id, change.id).await?;
        plan.publish(change, &published);
    }
    write(applying.connection, tenant, space.id, &plan).await?;
    applying.finish(work, &plan, space).await
}

pub(super) struct Applying<'c> {
    pub connection: &'c mut PgConnection,
    pub scope: &'c Scope,
    pub space: SpaceRow,
}

impl Applying<'_> {
    /// What the changes that were not made yet write; nothing where one rests on what is no longer so.
    async fn plan<'w>(&mut self, rewrites: &'w [Rewrite]) -> Outcome<Option<Plan<'w>>> {
        let made = self.made(rewrites).await?;
        let is_new = |rewrite: &&Rewrite| !made.contains(&rewrite.change.id);
        let rewrites: Vec<_> = rewrites.iter().filter(is_new).collect();
        if !self.have_turns(&rewrites).await? {
            return Ok(None);
        }
        let mut plan = Plan::new(self.space, self.current(&rewrites).await?);
        let is_sound = rewrites.into_iter().all(|rewrite| plan.add(rewrite));
        Ok(is_sound.then_some(plan))
    }

    /// Those of the changes that were made before.
    async fn made(&mut self, rewrites: &[Rewrite]) -> Outcome<HashSet<ChangeId>> {
        if rewrites.is_empty() {
            return Ok(HashSet::new());
        }
        let ids = rewrites
            .iter()
            .map(|rewrite| from_change_id(rewrite.change.id));
        let made = sqlx::query_scalar(
            "SELECT id FROM changes WHERE tenant = $1 AND space = $2 AND id = ANY ($3)",
        )
        .bind(self.scope.tenant.as_str())
        .bind(self.space.id)
        .bind(ids.collect::<Vec<_>>())
        .fetch_all(&mut *self.connection)
        .await?;
        Ok(made.into_iter().map(to_change_id).collect())
    }

    /// Whether every turn that they come from is there still, and none that states a new fact was replaced.
    async fn have_turns(&mut self, rewrites: &[&Rewrite]) -> Outcome<bool> {
        let revisions = rewrites.iter().flat_map(|rewrite| &rewrite.revisions);
        let turns: HashSet<&TurnId> = revisions
            .clone()
            .flat_map(|revision| &revision.derivation.turns)
            .collect();
        if turns.is_empty() {
            return Ok(true);
        }
        let there: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM turns WHERE tenant = $1 AND space = $2 AND id = ANY ($3)
                 AND (replaced_by IS NULL OR NOT id = ANY ($4))",
        )
        .bind(self.scope.tenant.as_str())
        .bind(self.space.id)
        .bind(id_list(turns.iter().copied()))
        .bind(id_list(revisions.filter_map(Revision::stating)))
        .fetch_one(&mut *self.connection)
        .await?;
        Ok(there == turns.len() as i64)
    }

    /// The current version of each.
    async fn current(&mut self, rewrites: &[&Rewrite]) -> Outcome<HashMap<DerivationId, Current>> {
        let revisions = rewrites.iter().flat_map(|rewrite| &rewrite.revisions);
        let ids: Vec<_> = revisions
            .map(|revision| from_derivation_id(revision.derivation.id))
            .collect();
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let rows = sqlx::query(
            "SELECT id, version, first, passage FROM derivations
             WHERE tenant = $1 AND space = $2 AND id = ANY ($3) AND known_until IS NULL",
        )
        .bind(self.scope.tenant.as_str())
        .bind(self.space.id)
        .bind(ids)
        .fetch_all(&mut *self.connection)
        .await?;
        let current = rows.iter().map(|row| {
            let current = Current {
                version: to_u32(row.try_get(1)?),
                first: row.try_get(2)?,
                passage: to_u32(row.try_get(3)?),
                place: None,
            };
            Ok((to_derivation_id(row.try_get(0)?), current))
        });
        current.collect()
    }

    /// Conflicts, the space's counters, and what is to be told. The head moves with each thing that is told, so that no two have the
    /// same number.
    pub async fn finish(self, work: &Work, plan: &Plan<'_>, before: SpaceRow) -> Outcome<Applied> {
        let (tenant, space) = (self.scope.tenant.as_str(), self.space.id);
        let found = write::find(self.connection, tenant, space, &work.found).await?;
        let settled = write::settle(self.connection, tenant, space, &work.settled).await?;
        let mut head = self.space.head;
        for (kind, steps) in [
            (Kind::Derived, plan.versions.len() as i64),
            (Kind::Conflict, i64::from(found)),
            (Kind::Refreshed, i64::from(settled)),
        ] {
            outbox::note(self.connection, self.scope, kind, head, head + steps).await?;
            head += steps;
        }
        if head > before.head || plan.next_passage > before.next_passage {
            write::save_space(self.connection, tenant, space, head, plan).await?;
        }
        Ok(Applied::Done(head.cast_unsigned()))
    }
}
