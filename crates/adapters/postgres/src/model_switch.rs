//! Changes of the embedding model: what the operator wants, and the steps of each space, tenant by
//! tenant.

use async_trait::async_trait;
use futures::TryStreamExt;
use memfleet_columns::{
    FirstSteps, SwitchState, VectorSlot, VectorSlots, embedding_key, json, name, to_json,
};
use memfleet_domain::Scope;
use memfleet_domain::ids::{SpaceId, TenantId};
use memfleet_ports::model_switch::{
    ModelSwitches, SpaceComparison, SwitchOrder, SwitchProgress, SwitchStep,
};
use memfleet_ports::store::Result;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use crate::failure::Outcome;
use crate::scope;
use crate::store::{PostgresStore, twice};

/// Passages whose vectors one transaction removes.
const DROPPED_TOGETHER: i64 = 2_000;

#[async_trait]
impl ModelSwitches for PostgresStore {
    async fn order(&self) -> Result<Option<SwitchOrder>> {
        let order = async { order(&mut *self.sweep().await?).await };
        self.ask("switch_order", order).await
    }

    async fn set_order(&self, order: &SwitchOrder) -> Result<()> {
        let attempt = || set_order(self, order);
        self.ask("set_switch_order", twice(attempt)).await
    }

    async fn steps(&self, order: &SwitchOrder, limit: u32) -> Result<Vec<(Scope, SwitchStep)>> {
        self.ask("switch_steps", steps(self, order, limit)).await
    }

    async fn take(
        &self,
        scope: &Scope,
        order: &SwitchOrder,
        step: SwitchStep,
        comparison: SpaceComparison,
    ) -> Result<()> {
        let attempt = || async {
            let mut write = self.write(&scope.tenant).await?;
            take(&mut write, scope, order, step, comparison).await?;
            write.commit().await
        };
        self.ask("take_switch_step", twice(attempt)).await
    }

    async fn progress(&self, order: &SwitchOrder) -> Result<SwitchProgress> {
        self.ask("switch_progress", progress(self, order)).await
    }
}

/// The operator's order.
pub async fn order(connection: &mut PgConnection) -> Outcome<Option<SwitchOrder>> {
    let document: Option<String> = sqlx::query_scalar("SELECT document FROM model_switch")
        .fetch_optional(connection)
        .await?;
    Ok(document.as_deref().map(json).transpose()?)
}

async fn set_order(store: &PostgresStore, order: &SwitchOrder) -> Outcome<()> {
    store.ensure_named(&order.target).await?;
    // Builds of before do not say which embedding space a space's vectors are of.
    for tenant in tenants(store).await? {
        let unnamed: Vec<String> = sqlx::query_scalar(
            "SELECT name FROM spaces WHERE tenant = $1 AND embedding IS NULL AND second_embedding IS NULL
                 AND next_passage > 0 AND name IS NOT NULL",
        )
        .bind(tenant.as_str())
        .fetch_all(&mut *store.read(&tenant).await?)
        .await?;
        for space in unnamed {
            let scope = Scope {
                tenant: tenant.clone(),
                space: name(SpaceId::new(space))?,
            };
            name_place(store, &scope).await?;
        }
    }
    let mut write = store.write_across().await?;
    sqlx::query(
        "INSERT INTO model_switch (id, document) VALUES (1, $1)
         ON CONFLICT (id) DO UPDATE SET document = excluded.document",
    )
    .bind(to_json(order))
    .execute(&mut *write)
    .await?;
    write.commit().await
}

/// Takes down which embedding space the vectors of a space are of.
async fn name_place(store: &PostgresStore, scope: &Scope) -> Outcome<()> {
    let mut write = store.write(&scope.tenant).await?;
    if let Some(space) = scope::lock(&mut write, scope).await? {
        sqlx::query("UPDATE spaces SET embedding = $3 WHERE tenant = $1 AND id = $2")
            .bind(scope.tenant.as_str())
            .bind(space.id)
            .bind(space.slots.first)
            .execute(&mut *write)
            .await?;
    }
    write.commit().await
}

async fn tenants(store: &PostgresStore) -> Outcome<Vec<TenantId>> {
    let tenants: Vec<String> = sqlx::query_scalar("SELECT tenant FROM tenants_after('', $1)")
        .bind(i64::MAX)
        .fetch_all(&mut *store.sweep().await?)
        .await?;
    tenants
        .into_iter()
        .map(|tenant| Ok(name(TenantId::new(tenant))?))
        .collect()
}

/// The columns that [`state`] reads.
macro_rules! state_columns {
    () => {
        "head, embedding, second_embedding, serves_second, is_other_whole, embedded, second_embedded, emptying, comparison"
    };
}

fn state(row: &PgRow) -> Outcome<SwitchState> {
    let emptying: Option<bool> = row.try_get(7)?;
    let comparison: Option<&str> = row.try_get(8)?;
    Ok(SwitchState {
        head: row.try_get(0)?,
        slots: VectorSlots {
            first: row.try_get(1)?,
            second: row.try_get(2)?,
            serves_second: row.try_get(3)?,
            is_other_whole: row.try_get(4)?,
        },
        first_embedded: row.try_get(5)?,
        second_embedded: row.try_get(6)?,
        emptying: emptying.map(VectorSlot::from_flag),
        comparison: comparison.map(json).transpose()?,
    })
}

async fn steps(
    store: &PostgresStore,
    order: &SwitchOrder,
    limit: u32,
) -> Outcome<Vec<(Scope, SwitchStep)>> {
    let target = embedding_key(&order.target);
    let mut found = Vec::new();
    for tenant in tenants(store).await? {
        let left = limit.saturating_sub(found.len() as u32);
        if left == 0 {
            break;
        }
        let mut read = store.read(&tenant).await?;
        // Nothing is to be done in a space that has vectors of the target alone.
        let mut rows = sqlx::query(concat!(
            "SELECT ",
            state_columns!(),
            ", name FROM spaces WHERE tenant = $1 AND name IS NOT NULL AND (emptying IS NOT NULL
                 OR coalesce(embedding, $2) <> $2 OR coalesce(second_embedding, $2) <> $2) ORDER BY id",
        ))
        .bind(tenant.as_str())
        .bind(target)
        .fetch(&mut *read);
        let mut first = FirstSteps::new(left);
        while let Some(row) = rows.try_next().await? {
            if let Some(step) = state(&row)?.next_step(target, order) {
                let scope = Scope {
                    tenant: tenant.clone(),
                    space: name(SpaceId::new(row.try_get::<&str, _>(9)?))?,
                };
                first.push(scope, step);
            }
        }
        found.extend(first.into_steps());
    }
    Ok(found)
}

/// True where the operator wants this, until the transaction ends: a new order waits for it.
async fn is_ordered(connection: &mut PgConnection, order: &SwitchOrder) -> Outcome<bool> {
    let document: Option<String> =
        sqlx::query_scalar("SELECT document FROM model_switch FOR SHARE")
            .fetch_optional(connection)
            .await?;
    let known: Option<SwitchOrder> = document.as_deref().map(json).transpose()?;
    Ok(known.as_ref() == Some(order))
}

async fn take(
    connection: &mut PgConnection,
    scope: &Scope,
    order: &SwitchOrder,
    step: SwitchStep,
    comparison: SpaceComparison,
) -> Outcome<()> {
    if !is_ordered(connection, order).await? {
        return Ok(());
    }
    let tenant = scope.tenant.as_str();
    let space = scope::lock(connection, scope).await?;
    let Some(space) = space.filter(|space| space.is_alive) else {
        return Ok(());
    };
    let target = embedding_key(&order.target);
    let row = sqlx::query(concat!(
        "SELECT ",
        state_columns!(),
        " FROM spaces WHERE tenant = $1 AND id = $2",
    ))
    .bind(tenant)
    .bind(space.id)
    .fetch_one(&mut *connection)
    .await?;
    let mut state = state(&row)?;
    if state.next_step(target, order) != Some(step) {
        return Ok(());
    }
    state.take(step, target, comparison);
    if let Some(slot) = state.emptying
        && remove_some(connection, tenant, space.id, slot).await? < DROPPED_TOGETHER
    {
        state.emptying = None;
    }
    save(connection, tenant, space.id, &state).await
}

async fn save(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    state: &SwitchState,
) -> Outcome<()> {
    sqlx::query(
        "UPDATE spaces SET embedding = $3, second_embedding = $4, serves_second = $5, is_other_whole = $6, embedded = $7,
             second_embedded = $8, emptying = $9, comparison = $10 WHERE tenant = $1 AND id = $2",
    )
    .bind(tenant)
    .bind(space)
    .bind(state.slots.first)
    .bind(state.slots.second)
    .bind(state.slots.serves_second)
    .bind(state.slots.is_other_whole)
    .bind(state.first_embedded)
    .bind(state.second_embedded)
    .bind(state.emptying.map(VectorSlot::is_second))
    .bind(state.comparison.as_ref().map(to_json))
    .execute(connection)
    .await?;
    Ok(())
}

/// Removes some of the vectors of a place; how many.
async fn remove_some(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    slot: VectorSlot,
) -> Outcome<i64> {
    let removed = sqlx::query_scalar(match slot {
        VectorSlot::First => {
            "WITH part AS (SELECT passage FROM token_vectors WHERE tenant = $1 AND space = $2 ORDER BY passage LIMIT $3),
                 gone AS (DELETE FROM token_vectors v USING part
                     WHERE v.tenant = $1 AND v.space = $2 AND v.passage = part.passage RETURNING v.passage),
                 bare AS (UPDATE passages g SET sentence = NULL, pieces = '' FROM part
                     WHERE g.tenant = $1 AND g.space = $2 AND g.passage = part.passage)
             SELECT count(*) FROM gone"
        }
        VectorSlot::Second => {
            "WITH part AS (SELECT passage FROM second_vectors WHERE tenant = $1 AND space = $2 ORDER BY passage LIMIT $3),
                 gone AS (DELETE FROM second_vectors v USING part
                     WHERE v.tenant = $1 AND v.space = $2 AND v.passage = part.passage RETURNING v.passage)
             SELECT count(*) FROM gone"
        }
    });
    Ok(removed
        .bind(tenant)
        .bind(space)
        .bind(DROPPED_TOGETHER)
        .fetch_one(connection)
        .await?)
}

async fn progress(store: &PostgresStore, order: &SwitchOrder) -> Outcome<SwitchProgress> {
    let mut sum = SwitchProgress::default();
    let (mut overlap, mut correlation) = (0.0, 0.0);
    for tenant in tenants(store).await? {
        let mut read = store.read(&tenant).await?;
        let row = sqlx::query(
            "SELECT count(*) FILTER (WHERE served IS NOT NULL), count(*) FILTER (WHERE other = $2 AND NOT is_other_whole),
                 count(*) FILTER (WHERE other = $2 AND is_other_whole), count(*) FILTER (WHERE served = $2),
                 count(*) FILTER (WHERE other IS NOT NULL), coalesce(sum(turns), 0)::bigint,
                 coalesce(sum(CASE WHEN served <> $2 AND coalesce(other, 0) <> $2 THEN 0
                     WHEN reached IS NULL THEN turns
                     ELSE (SELECT count(*) FROM turns t WHERE t.tenant = $1 AND t.space = p.id AND t.change <= p.reached)
                     END), 0)::bigint,
                 coalesce(sum((comparison ->> 'queries')::bigint), 0)::bigint,
                 coalesce(sum((comparison ->> 'queries')::float8 * (comparison ->> 'overlap')::float8), 0),
                 coalesce(sum((comparison ->> 'queries')::float8 * (comparison ->> 'correlation')::float8), 0)
             FROM (SELECT id, is_other_whole,
                       CASE WHEN serves_second THEN second_embedding ELSE embedding END AS served,
                       CASE WHEN serves_second THEN embedding ELSE second_embedding END AS other,
                       CASE WHEN embedding = $2 THEN embedded ELSE second_embedded END AS reached,
                       CASE WHEN embedding = $2 OR second_embedding = $2 THEN comparison::json END AS comparison,
                       (SELECT coalesce(sum(s.turns), 0) FROM sessions s WHERE s.tenant = $1 AND s.space = o.id) AS turns
                   FROM spaces o WHERE o.tenant = $1 AND o.name IS NOT NULL) p",
        )
        .bind(tenant.as_str())
        .bind(embedding_key(&order.target))
        .fetch_one(&mut *read)
        .await?;
        let number = |index| row.try_get::<i64, _>(index).map(|number| number as u64);
        sum.spaces += number(0)?;
        sum.building += number(1)?;
        sum.compared += number(2)?;
        sum.serving += number(3)?;
        sum.beside += number(4)?;
        sum.turns += number(5)?;
        sum.done += number(6)?;
        sum.comparison.queries += number(7)? as u32;
        overlap += row.try_get::<f64, _>(8)?;
        correlation += row.try_get::<f64, _>(9)?;
    }
    let queries = f64::from(sum.comparison.queries).max(1.0);
    sum.comparison.overlap = overlap / queries;
    sum.comparison.correlation = correlation / queries;
    Ok(sum)
}
