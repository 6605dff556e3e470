//! Changes of the embedding model: what the operator wants, and the steps of each space.

use async_trait::async_trait;
use memfleet_columns::{VectorSlot, json, name, to_json};
use memfleet_domain::Scope;
use memfleet_domain::ids::{SpaceId, TenantId};
use memfleet_ports::model_switch::{
    ModelSwitches, SpaceComparison, SwitchGoal, SwitchOrder, SwitchProgress, SwitchStep,
};
use memfleet_ports::store::Result;
use sqlx::{Row, SqliteConnection};

use crate::failure::Outcome;
use crate::ledger::vectors::{embedding_space, find_embedding_space};
use crate::passages::first_key;
use crate::scope::{self, SpaceRow};
use crate::store::SqliteStore;

/// Passages whose vectors one transaction removes.
const DROPPED_TOGETHER: u32 = 2_000;

#[async_trait]
impl ModelSwitches for SqliteStore {
    async fn order(&self) -> Result<Option<SwitchOrder>> {
        Ok(order(&mut *self.look_up().await?).await?)
    }

    async fn set_order(&self, order: &SwitchOrder) -> Result<()> {
        let mut write = self.write().await?;
        set_order(&mut write, order).await?;
        Ok(write.commit().await?)
    }

    async fn steps(&self, order: &SwitchOrder, limit: u32) -> Result<Vec<(Scope, SwitchStep)>> {
        Ok(steps(&mut *self.read().await?, order, limit).await?)
    }

    async fn take(
        &self,
        scope: &Scope,
        order: &SwitchOrder,
        step: SwitchStep,
        comparison: SpaceComparison,
    ) -> Result<()> {
        let mut write = self.write_as_worker().await?;
        take(&mut write, scope, order, step, comparison).await?;
        Ok(write.commit().await?)
    }

    async fn progress(&self, order: &SwitchOrder) -> Result<SwitchProgress> {
        Ok(progress(&mut *self.read().await?, order).await?)
    }
}

/// The operator's order.
pub async fn order(connection: &mut SqliteConnection) -> Outcome<Option<SwitchOrder>> {
    let document: Option<String> = sqlx::query_scalar("SELECT document FROM model_switch")
        .fetch_optional(connection)
        .await?;
    Ok(document.as_deref().map(json).transpose()?)
}

async fn set_order(connection: &mut SqliteConnection, order: &SwitchOrder) -> Outcome<()> {
    embedding_space(connection, &order.target).await?;
    sqlx::query("INSERT OR REPLACE INTO model_switch (id, document) VALUES (1, ?)")
        .bind(to_json(order))
        .execute(connection)
        .await?;
    Ok(())
}

/// The next step of each space: `?1` is the target, `?2` whether it is to be built, `?3` to be
/// served, `?4` whether what is not served is to be dropped. A half-built place of a change that is
/// rolled back is dropped. Serving waits where the two models are less alike than `?6`. A place
/// that lacks less than a 64th of a large space's changes is compared: where turns come all the
/// time, the newest always wait for their vectors. The note of them is up to 16 changes late.
const STEP: &str = "CASE
    WHEN p.emptying IS NOT NULL THEN 4
    WHEN ?3 AND p.is_other_whole AND iif(p.serves_second, p.embedding, p.second_embedding) = ?1
        AND NOT ifnull(p.comparison ->> 'queries' > 0 AND p.comparison ->> 'overlap' < ?6, 0) THEN 2
    WHEN NOT ?2 AND p.is_other_whole AND iif(p.serves_second, p.second_embedding, p.embedding) = ?1 THEN 3
    WHEN ?2 AND NOT p.is_other_whole AND iif(p.serves_second, p.embedding, p.second_embedding) = ?1
        AND ifnull((p.head - iif(p.serves_second, p.embedded, p.second_embedded) + 16) * 64 <= p.head, 1) THEN 1
    WHEN NOT ?2 AND NOT p.is_other_whole AND iif(p.serves_second, p.embedding, p.second_embedding) = ?1 THEN 4
    WHEN ?2 AND iif(p.serves_second, p.second_embedding, p.embedding) <> ?1
        AND iif(p.serves_second, p.embedding, p.second_embedding) IS NULL THEN 0
    WHEN ?4 AND iif(p.serves_second, p.embedding, p.second_embedding) IS NOT NULL
        AND NOT (?2 AND iif(p.serves_second, p.embedding, p.second_embedding) = ?1) THEN 4
    END";

async fn steps(
    connection: &mut SqliteConnection,
    order: &SwitchOrder,
    limit: u32,
) -> Outcome<Vec<(Scope, SwitchStep)>> {
    let target = find_embedding_space(connection, &order.target).await?;
    let query = format!(
        "SELECT p.tenant, p.name, {STEP} AS step FROM spaces p WHERE p.name IS NOT NULL AND step IS NOT NULL
         ORDER BY step DESC, p.id LIMIT ?5"
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(query))
        .bind(target.unwrap_or(0))
        .bind(order.goal != SwitchGoal::RollBack)
        .bind(order.goal == SwitchGoal::Serve)
        .bind(order.drops)
        .bind(limit)
        .bind(order.min_overlap())
        .fetch_all(connection)
        .await?;
    let steps = rows.iter().map(|row| {
        let scope = Scope {
            tenant: name(TenantId::new(row.try_get::<&str, _>(0)?))?,
            space: name(SpaceId::new(row.try_get::<&str, _>(1)?))?,
        };
        Ok((scope, SwitchStep::ALL[row.try_get::<u32, _>(2)? as usize]))
    });
    steps.collect()
}

/// Asks again, inside the transaction that takes it, whether a step is the next one of a space.
async fn is_next(
    connection: &mut SqliteConnection,
    space: i64,
    (target, order): (i64, &SwitchOrder),
    step: SwitchStep,
) -> Outcome<bool> {
    let query = format!("SELECT {STEP} FROM spaces p WHERE p.id = ?5");
    let next: Option<u32> = sqlx::query_scalar(sqlx::AssertSqlSafe(query))
        .bind(target)
        .bind(order.goal != SwitchGoal::RollBack)
        .bind(order.goal == SwitchGoal::Serve)
        .bind(order.drops)
        .bind(space)
        .bind(order.min_overlap())
        .fetch_one(connection)
        .await?;
    Ok(next.map(|next| SwitchStep::ALL[next as usize]) == Some(step))
}

async fn take(
    connection: &mut SqliteConnection,
    scope: &Scope,
    order: &SwitchOrder,
    step: SwitchStep,
    comparison: SpaceComparison,
) -> Outcome<()> {
    if self::order(connection).await?.as_ref() != Some(order) {
        return Ok(());
    }
    let target = embedding_space(connection, &order.target).await?;
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(());
    };
    if !is_next(connection, space.id, (target, order), step).await? {
        return Ok(());
    }
    let update = match step {
        SwitchStep::Build if space.slots.serves_second => {
            "UPDATE spaces SET embedding = ?2, embedded = 0, is_other_whole = 0, comparison = NULL WHERE id = ?1"
        }
        SwitchStep::Build => {
            "UPDATE spaces SET second_embedding = ?2, second_embedded = 0, is_other_whole = 0, comparison = NULL WHERE id = ?1"
        }
        SwitchStep::Compare => {
            "UPDATE spaces SET is_other_whole = 1, comparison = ?3 WHERE id = ?1"
        }
        SwitchStep::Serve | SwitchStep::RollBack => {
            "UPDATE spaces SET serves_second = NOT serves_second WHERE id = ?1"
        }
        SwitchStep::Drop => return drop_some(connection, space).await,
    };
    sqlx::query(update)
        .bind(space.id)
        .bind(target)
        .bind(to_json(&comparison))
        .execute(connection)
        .await?;
    Ok(())
}

/// Takes the name off the place that searches do not use, and removes some of its vectors.
async fn drop_some(connection: &mut SqliteConnection, space: SpaceRow) -> Outcome<()> {
    let emptying: Option<bool> = sqlx::query_scalar("SELECT emptying FROM spaces WHERE id = ?")
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
                    "UPDATE spaces SET embedding = NULL, embedded = NULL, is_other_whole = 0, emptying = 0 WHERE id = ?"
                }
                VectorSlot::Second => {
                    "UPDATE spaces SET second_embedding = NULL, second_embedded = NULL, is_other_whole = 0, emptying = 1 WHERE id = ?"
                }
            })
            .bind(space.id)
            .execute(&mut *connection)
            .await?;
            slot
        }
    };
    let removed = match slot {
        VectorSlot::First => {
            remove(
                connection,
                space.id,
                "UPDATE passages SET sentence = NULL, pieces = x'' WHERE key IN (
                     SELECT key FROM token_vectors WHERE key >= ?1 AND key < ?2 ORDER BY key LIMIT ?3)",
            )
            .await?;
            remove(
                connection,
                space.id,
                "DELETE FROM token_vectors WHERE key IN (
                     SELECT key FROM token_vectors WHERE key >= ?1 AND key < ?2 ORDER BY key LIMIT ?3)",
            )
            .await?
        }
        VectorSlot::Second => {
            remove(
                connection,
                space.id,
                "DELETE FROM second_vectors WHERE key IN (
                     SELECT key FROM second_vectors WHERE key >= ?1 AND key < ?2 ORDER BY key LIMIT ?3)",
            )
            .await?
        }
    };
    if removed < u64::from(DROPPED_TOGETHER) {
        sqlx::query("UPDATE spaces SET emptying = NULL WHERE id = ?")
            .bind(space.id)
            .execute(connection)
            .await?;
    }
    Ok(())
}

async fn remove(
    connection: &mut SqliteConnection,
    space: i64,
    statement: &'static str,
) -> Outcome<u64> {
    let removed = sqlx::query(statement)
        .bind(first_key(space))
        .bind(first_key(space + 1))
        .bind(DROPPED_TOGETHER)
        .execute(connection)
        .await?;
    Ok(removed.rows_affected())
}

async fn progress(
    connection: &mut SqliteConnection,
    order: &SwitchOrder,
) -> Outcome<SwitchProgress> {
    let target = find_embedding_space(connection, &order.target).await?;
    let row = sqlx::query(
        "SELECT count(*) FILTER (WHERE embedding IS NOT NULL OR second_embedding IS NOT NULL),
             count(*) FILTER (WHERE other = ?1 AND NOT is_other_whole), count(*) FILTER (WHERE other = ?1 AND is_other_whole),
             count(*) FILTER (WHERE served = ?1), count(*) FILTER (WHERE other IS NOT NULL),
             coalesce(sum(turns), 0),
             coalesce(sum(CASE WHEN served <> ?1 AND coalesce(other, 0) <> ?1 THEN 0
                 WHEN reached IS NULL THEN turns
                 ELSE (SELECT count(*) FROM turns t WHERE t.space = p.id AND t.change <= p.reached) END), 0),
             coalesce(sum(comparison ->> 'queries'), 0),
             coalesce(sum((comparison ->> 'queries') * (comparison ->> 'overlap')), 0.0),
             coalesce(sum((comparison ->> 'queries') * (comparison ->> 'correlation')), 0.0)
         FROM (SELECT id, embedding, second_embedding, is_other_whole,
                   iif(serves_second, second_embedding, embedding) AS served, iif(serves_second, embedding, second_embedding) AS other,
                   iif(embedding = ?1, embedded, second_embedded) AS reached,
                   iif(embedding = ?1 OR second_embedding = ?1, comparison, NULL) AS comparison,
                   (SELECT coalesce(sum(s.turns), 0) FROM sessions s WHERE s.space = spaces.id) AS turns
               FROM spaces WHERE name IS NOT NULL) AS p",
    )
    .bind(target.unwrap_or(0))
    .fetch_one(connection)
    .await?;
    let number = |index| row.try_get::<i64, _>(index).map(|number| number as u64);
    let queries = number(7)?;
    let mean = |index| {
        let sum = row.try_get::<f64, _>(index);
        sum.map(|sum| sum / (queries as f64).max(1.0))
    };
    Ok(SwitchProgress {
        spaces: number(0)?,
        building: number(1)?,
        compared: number(2)?,
        serving: number(3)?,
        beside: number(4)?,
        turns: number(5)?,
        done: number(6)?,
        comparison: SpaceComparison {
            queries: queries as u32,
            overlap: mean(8)?,
            correlation: mean(9)?,
        },
    })
}
