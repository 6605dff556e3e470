//! Changes of the embedding model: what the operator wants, and the steps of each space, tenant by
//! tenant.

use async_trait::async_trait;
use futures::TryStreamExt;
use memfleet_columns::{
    FirstSteps, SwitchState, VectorSlot, VectorSlots, embedding_key, json, name, to_json,
};
use memfleet_domain::Scope;
use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_domain::ids::{SpaceId, TenantId};
use memfleet_ports::model_switch::{
    ModelSwitches, NextStep, SpaceComparison, SwitchOrder, SwitchProgress,
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

    async fn replace_order(
        &self,
        known: Option<&SwitchOrder>,
        order: &SwitchOrder,
    ) -> Result<bool> {
        let attempt = || replace_order(self, known, order);
        self.ask("replace_switch_order", twice(attempt)).await
    }

    async fn follow_language(&self, scope: &Scope, target: &EmbeddingSpace) -> Result<bool> {
        let attempt = || follow_language(self, scope, target);
        self.ask("follow_language", twice(attempt)).await
    }

    async fn steps(&self, order: Option<&SwitchOrder>, limit: u32) -> Result<Vec<NextStep>> {
        self.ask("switch_steps", steps(self, order, limit)).await
    }

    async fn take(&self, step: &NextStep, comparison: SpaceComparison) -> Result<()> {
        let attempt = || async {
            let mut write = self.write(&step.scope.tenant).await?;
            take(&mut write, step, comparison).await?;
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
    prepare(store, order).await?;
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

async fn replace_order(
    store: &PostgresStore,
    known: Option<&SwitchOrder>,
    order: &SwitchOrder,
) -> Outcome<bool> {
    prepare(store, order).await?;
    let mut write = store.write_across().await?;
    let document: Option<String> = sqlx::query_scalar("SELECT document FROM model_switch")
        .fetch_optional(&mut *write)
        .await?;
    let stands: Option<SwitchOrder> = document.as_deref().map(json).transpose()?;
    if stands.as_ref() != known {
        return Ok(false);
    }
    // Another order may come in between.
    let replaced = sqlx::query(
        "INSERT INTO model_switch (id, document) VALUES (1, $1)
         ON CONFLICT (id) DO UPDATE SET document = excluded.document WHERE model_switch.document = $2",
    )
    .bind(to_json(order))
    .bind(document)
    .execute(&mut *write)
    .await?;
    write.commit().await?;
    Ok(replaced.rows_affected() > 0)
}

/// Names the embedding spaces that an order is about.
async fn prepare(store: &PostgresStore, order: &SwitchOrder) -> Outcome<()> {
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
    Ok(())
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
        "head, embedding, second_embedding, serves_second, is_other_whole, embedded, second_embedded, emptying, comparison, language_embedding"
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
        language: row.try_get(9)?,
    })
}

async fn follow_language(
    store: &PostgresStore,
    scope: &Scope,
    target: &EmbeddingSpace,
) -> Outcome<bool> {
    store.ensure_named(target).await?;
    // Builds of before do not say which embedding space a space's vectors are of.
    name_place(store, scope).await?;
    let mut write = store.write(&scope.tenant).await?;
    let space = scope::lock(&mut write, scope).await?;
    let Some(space) = space.filter(|space| space.is_alive) else {
        return Ok(false);
    };
    let noted = sqlx::query(
        "UPDATE spaces SET language_embedding = $3
         WHERE tenant = $1 AND id = $2 AND language_embedding IS DISTINCT FROM $3",
    )
    .bind(scope.tenant.as_str())
    .bind(space.id)
    .bind(embedding_key(target))
    .execute(&mut *write)
    .await?;
    write.commit().await?;
    Ok(noted.rows_affected() > 0)
}

async fn steps(
    store: &PostgresStore,
    order: Option<&SwitchOrder>,
    limit: u32,
) -> Outcome<Vec<NextStep>> {
    let mut found = Vec::new();
    for tenant in tenants(store).await? {
        let left = limit.saturating_sub(found.len() as u32);
        if left == 0 {
            break;
        }
        let mut read = store.read(&tenant).await?;
        // Spaces with vectors of their target alone are left out: they have no next step.
        let mut rows = sqlx::query(concat!(
            "SELECT ",
            state_columns!(),
            ", name, target, (SELECT e.name FROM embedding_spaces e WHERE e.key = language_embedding) FROM (
                 SELECT *, coalesce(CASE WHEN NOT $3 THEN language_embedding END, $2) AS target FROM spaces
                 WHERE tenant = $1 AND name IS NOT NULL) AS p
             WHERE target IS NOT NULL AND (emptying IS NOT NULL
                 OR coalesce(embedding, target) <> target OR coalesce(second_embedding, target) <> target) ORDER BY id",
        ))
        .bind(tenant.as_str())
        .bind(order.map(|order| embedding_key(&order.target)))
        .bind(order.is_some_and(|order| order.every_language))
        .fetch(&mut *read);
        let mut first = FirstSteps::new(left);
        while let Some(row) = rows.try_next().await? {
            let scope = Scope {
                tenant: tenant.clone(),
                space: name(SpaceId::new(row.try_get::<&str, _>(10)?))?,
            };
            let language: Option<&str> = row.try_get(12)?;
            let language = language.map(json).transpose()?;
            let next = state(&row)?.next(scope, row.try_get(11)?, order, language);
            next.into_iter().for_each(|next| first.push(next));
        }
        found.extend(first.into_steps());
    }
    Ok(found)
}

/// The operator's order, which stays until the transaction ends: a new one waits for it.
async fn locked_order(connection: &mut PgConnection) -> Outcome<Option<SwitchOrder>> {
    let document: Option<String> =
        sqlx::query_scalar("SELECT document FROM model_switch FOR SHARE")
            .fetch_optional(connection)
            .await?;
    Ok(document.as_deref().map(json).transpose()?)
}

async fn take(
    connection: &mut PgConnection,
    next: &NextStep,
    comparison: SpaceComparison,
) -> Outcome<()> {
    let ordered = locked_order(connection).await?;
    if !next.is_for_language && ordered.as_ref() != Some(&next.order) {
        return Ok(());
    }
    let tenant = next.scope.tenant.as_str();
    let space = scope::lock(connection, &next.scope).await?;
    let Some(space) = space.filter(|space| space.is_alive) else {
        return Ok(());
    };
    let target = embedding_key(&next.order.target);
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
    if !state.is_next(next, target, ordered.as_ref()) {
        return Ok(());
    }
    state.take(next.step, target, comparison);
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
             second_embedded = $8, emptying = $9, comparison = $10, language_embedding = $11 WHERE tenant = $1 AND id = $2",
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
    .bind(state.language)
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
                   FROM spaces o WHERE o.tenant = $1 AND o.name IS NOT NULL AND ($3 OR o.language_embedding IS NULL)) p",
        )
        .bind(tenant.as_str())
        .bind(embedding_key(&order.target))
        .bind(order.every_language)
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
