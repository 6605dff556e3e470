//! Changes of the embedding model: what the operator wants, and the steps of each space, tenant by
//! tenant.

use async_trait::async_trait;
use memfleet_columns::{VectorSlot, embedding_key, json, name, to_json};
use memfleet_domain::Scope;
use memfleet_domain::ids::{SpaceId, TenantId};
use memfleet_ports::model_switch::{
    ModelSwitches, SpaceComparison, SwitchGoal, SwitchOrder, SwitchProgress, SwitchStep,
};
use memfleet_ports::store::Result;
use sqlx::{PgConnection, Row};

use crate::failure::Outcome;
use crate::scope::{self, SpaceRow};
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

/// The next step of the space `p`, as a number of [`SwitchStep::ALL`], under the order `$2` to
/// `$5`: that of `switch_step`, and two more. Serving waits where the two models are less alike
/// than `$7`. A half-built place of a change that is rolled back is dropped. A place that lacks
/// less than a 64th of a large space's changes is compared: where turns come all the time, the
/// newest always wait for their vectors. The note of them is up to 16 changes late.
macro_rules! next_step {
    () => {
        "coalesce(nullif(switch_step(p, $2, $3, $4, $5), CASE
             WHEN (p.comparison::json ->> 'queries')::integer > 0 AND (p.comparison::json ->> 'overlap')::float8 < $7 THEN 2
         END), CASE
             WHEN p.is_other_whole THEN NULL
             WHEN CASE WHEN p.serves_second THEN p.embedding ELSE p.second_embedding END IS DISTINCT FROM $2 THEN NULL
             WHEN NOT $3 THEN 4
             WHEN (p.head - CASE WHEN p.serves_second THEN p.embedded ELSE p.second_embedded END + 16) * 64 <= p.head THEN 1
         END)"
    };
}

async fn steps(
    store: &PostgresStore,
    order: &SwitchOrder,
    limit: u32,
) -> Outcome<Vec<(Scope, SwitchStep)>> {
    let mut found = Vec::new();
    for tenant in tenants(store).await? {
        let left = i64::from(limit) - found.len() as i64;
        if left <= 0 {
            break;
        }
        let mut read = store.read(&tenant).await?;
        let rows = sqlx::query(concat!(
            "SELECT name, step FROM (SELECT p.name, ",
            next_step!(),
            " AS step FROM spaces p WHERE p.tenant = $1 AND p.name IS NOT NULL) s
             WHERE step IS NOT NULL ORDER BY step DESC LIMIT $6",
        ))
        .bind(tenant.as_str())
        .bind(embedding_key(&order.target))
        .bind(order.goal != SwitchGoal::RollBack)
        .bind(order.goal == SwitchGoal::Serve)
        .bind(order.drops)
        .bind(left)
        .bind(order.min_overlap())
        .fetch_all(&mut *read)
        .await?;
        for row in rows {
            let scope = Scope {
                tenant: tenant.clone(),
                space: name(SpaceId::new(row.try_get::<&str, _>(0)?))?,
            };
            found.push((scope, SwitchStep::ALL[row.try_get::<i32, _>(1)? as usize]));
        }
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
    let next: Option<i32> = sqlx::query_scalar(concat!(
        "SELECT ",
        next_step!(),
        " FROM spaces p WHERE p.tenant = $1 AND p.id = $6",
    ))
    .bind(tenant)
    .bind(target)
    .bind(order.goal != SwitchGoal::RollBack)
    .bind(order.goal == SwitchGoal::Serve)
    .bind(order.drops)
    .bind(space.id)
    .bind(order.min_overlap())
    .fetch_one(&mut *connection)
    .await?;
    if next.map(|next| SwitchStep::ALL[next as usize]) != Some(step) {
        return Ok(());
    }
    let update = match step {
        SwitchStep::Build if space.slots.serves_second => {
            "UPDATE spaces SET embedding = $3, embedded = 0, is_other_whole = false, comparison = NULL
             WHERE tenant = $1 AND id = $2 AND $4::text IS NOT NULL"
        }
        SwitchStep::Build => {
            "UPDATE spaces SET second_embedding = $3, second_embedded = 0, is_other_whole = false, comparison = NULL
             WHERE tenant = $1 AND id = $2 AND $4::text IS NOT NULL"
        }
        SwitchStep::Compare => {
            "UPDATE spaces SET is_other_whole = true, comparison = $4
             WHERE tenant = $1 AND id = $2 AND $3::bigint IS NOT NULL"
        }
        SwitchStep::Serve | SwitchStep::RollBack => {
            "UPDATE spaces SET serves_second = NOT serves_second
             WHERE tenant = $1 AND id = $2 AND $3::bigint IS NOT NULL AND $4::text IS NOT NULL"
        }
        SwitchStep::Drop => return drop_some(connection, tenant, space).await,
    };
    sqlx::query(update)
        .bind(tenant)
        .bind(space.id)
        .bind(target)
        .bind(to_json(&comparison))
        .execute(connection)
        .await?;
    Ok(())
}

/// Takes the name off the place that searches do not use, and removes some of its vectors.
async fn drop_some(connection: &mut PgConnection, tenant: &str, space: SpaceRow) -> Outcome<()> {
    let emptying: Option<bool> =
        sqlx::query_scalar("SELECT emptying FROM spaces WHERE tenant = $1 AND id = $2")
            .bind(tenant)
            .bind(space.id)
            .fetch_one(&mut *connection)
            .await?;
    let slot = match emptying {
        Some(true) => VectorSlot::Second,
        Some(false) => VectorSlot::First,
        None => {
            let Some(slot) = space.slots.other() else {
                return Ok(());
            };
            sqlx::query(match slot {
                VectorSlot::First => {
                    "UPDATE spaces SET embedding = NULL, embedded = NULL, is_other_whole = false, emptying = false
                     WHERE tenant = $1 AND id = $2"
                }
                VectorSlot::Second => {
                    "UPDATE spaces SET second_embedding = NULL, second_embedded = NULL, is_other_whole = false, emptying = true
                     WHERE tenant = $1 AND id = $2"
                }
            })
            .bind(tenant)
            .bind(space.id)
            .execute(&mut *connection)
            .await?;
            slot
        }
    };
    let removed: i64 = sqlx::query_scalar(match slot {
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
    })
    .bind(tenant)
    .bind(space.id)
    .bind(DROPPED_TOGETHER)
    .fetch_one(&mut *connection)
    .await?;
    if removed < DROPPED_TOGETHER {
        sqlx::query("UPDATE spaces SET emptying = NULL WHERE tenant = $1 AND id = $2")
            .bind(tenant)
            .bind(space.id)
            .execute(connection)
            .await?;
    }
    Ok(())
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
