//! Changes of the embedding model: what the operator wants, and the steps of each space.

use async_trait::async_trait;
use futures::TryStreamExt;
use memfleet_columns::{FirstSteps, SwitchState, VectorSlot, VectorSlots, json, name, to_json};
use memfleet_domain::Scope;
use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_domain::ids::{SpaceId, TenantId};
use memfleet_ports::model_switch::{
    ModelSwitches, NextStep, SpaceComparison, SwitchOrder, SwitchProgress,
};
use memfleet_ports::store::Result;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::failure::Outcome;
use crate::ledger::vectors::{embedding_space, find_embedding_space};
use crate::passages::first_key;
use crate::scope;
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

    async fn replace_order(
        &self,
        known: Option<&SwitchOrder>,
        order: &SwitchOrder,
    ) -> Result<bool> {
        let mut write = self.write_as_worker().await?;
        if self::order(&mut write).await?.as_ref() != known {
            return Ok(false);
        }
        set_order(&mut write, order).await?;
        write.commit().await?;
        Ok(true)
    }

    async fn follow_language(&self, scope: &Scope, target: &EmbeddingSpace) -> Result<bool> {
        let mut write = self.write_as_worker().await?;
        let is_new = follow_language(&mut write, scope, target).await?;
        write.commit().await?;
        Ok(is_new)
    }

    async fn steps(&self, order: Option<&SwitchOrder>, limit: u32) -> Result<Vec<NextStep>> {
        Ok(steps(&mut *self.read().await?, order, limit).await?)
    }

    async fn take(&self, step: &NextStep, comparison: SpaceComparison) -> Result<()> {
        let mut write = self.write_as_worker().await?;
        take(&mut write, step, comparison).await?;
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

/// The columns that [`state`] reads.
macro_rules! state_columns {
    () => {
        "head, embedding, second_embedding, serves_second, is_other_whole, embedded, second_embedded, emptying, comparison, language_embedding"
    };
}

fn state(row: &SqliteRow) -> Outcome<SwitchState> {
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
    connection: &mut SqliteConnection,
    scope: &Scope,
    target: &EmbeddingSpace,
) -> Outcome<bool> {
    let target = embedding_space(connection, target).await?;
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(false);
    };
    let noted = sqlx::query(
        "UPDATE spaces SET language_embedding = ?1 WHERE id = ?2 AND language_embedding IS NOT ?1",
    )
    .bind(target)
    .bind(space.id)
    .execute(connection)
    .await?;
    Ok(noted.rows_affected() > 0)
}

async fn steps(
    connection: &mut SqliteConnection,
    order: Option<&SwitchOrder>,
    limit: u32,
) -> Outcome<Vec<NextStep>> {
    let target = match order {
        Some(order) => Some(
            find_embedding_space(connection, &order.target)
                .await?
                .unwrap_or(0),
        ),
        None => None,
    };
    // Spaces with vectors of their target alone are left out: they have no next step.
    let mut rows = sqlx::query(concat!(
        "SELECT ",
        state_columns!(),
        ", tenant, name, coalesce(iif(?2, NULL, language_embedding), ?1) AS target,
             (SELECT e.name FROM embedding_spaces e WHERE e.id = language_embedding) FROM spaces
         WHERE name IS NOT NULL AND target IS NOT NULL AND (emptying IS NOT NULL
             OR coalesce(embedding, target) <> target OR coalesce(second_embedding, target) <> target) ORDER BY id",
    ))
    .bind(target)
    .bind(order.is_some_and(|order| order.every_language))
    .fetch(connection);
    let mut first = FirstSteps::new(limit);
    while let Some(row) = rows.try_next().await? {
        let scope = Scope {
            tenant: name(TenantId::new(row.try_get::<&str, _>(10)?))?,
            space: name(SpaceId::new(row.try_get::<&str, _>(11)?))?,
        };
        let language: Option<&str> = row.try_get(13)?;
        let language = language.map(json).transpose()?;
        let next = state(&row)?.next(scope, row.try_get(12)?, order, language);
        next.into_iter().for_each(|next| first.push(next));
    }
    Ok(first.into_steps())
}

async fn take(
    connection: &mut SqliteConnection,
    next: &NextStep,
    comparison: SpaceComparison,
) -> Outcome<()> {
    let ordered = order(connection).await?;
    if !next.is_for_language && ordered.as_ref() != Some(&next.order) {
        return Ok(());
    }
    let target = embedding_space(connection, &next.order.target).await?;
    let Some(space) = scope::find_alive(connection, &next.scope).await? else {
        return Ok(());
    };
    let row = sqlx::query(concat!(
        "SELECT ",
        state_columns!(),
        " FROM spaces WHERE id = ?"
    ))
    .bind(space.id)
    .fetch_one(&mut *connection)
    .await?;
    let mut state = state(&row)?;
    if !state.is_next(next, target, ordered.as_ref()) {
        return Ok(());
    }
    state.take(next.step, target, comparison);
    if let Some(slot) = state.emptying
        && remove_some(connection, space.id, slot).await? < u64::from(DROPPED_TOGETHER)
    {
        state.emptying = None;
    }
    save(connection, space.id, &state).await
}

async fn save(connection: &mut SqliteConnection, space: i64, state: &SwitchState) -> Outcome<()> {
    sqlx::query(
        "UPDATE spaces SET embedding = ?, second_embedding = ?, serves_second = ?, is_other_whole = ?, embedded = ?,
             second_embedded = ?, emptying = ?, comparison = ?, language_embedding = ? WHERE id = ?",
    )
    .bind(state.slots.first)
    .bind(state.slots.second)
    .bind(state.slots.serves_second)
    .bind(state.slots.is_other_whole)
    .bind(state.first_embedded)
    .bind(state.second_embedded)
    .bind(state.emptying.map(VectorSlot::is_second))
    .bind(state.comparison.as_ref().map(to_json))
    .bind(state.language)
    .bind(space)
    .execute(connection)
    .await?;
    Ok(())
}

/// Removes some of the vectors of a place; how many.
async fn remove_some(
    connection: &mut SqliteConnection,
    space: i64,
    slot: VectorSlot,
) -> Outcome<u64> {
    if slot == VectorSlot::Second {
        let statement = "DELETE FROM second_vectors WHERE key IN (
             SELECT key FROM second_vectors WHERE key >= ?1 AND key < ?2 ORDER BY key LIMIT ?3)";
        return remove(connection, space, statement).await;
    }
    let statement = "UPDATE passages SET sentence = NULL, pieces = x'' WHERE key IN (
         SELECT key FROM token_vectors WHERE key >= ?1 AND key < ?2 ORDER BY key LIMIT ?3)";
    remove(connection, space, statement).await?;
    let statement = "DELETE FROM token_vectors WHERE key IN (
         SELECT key FROM token_vectors WHERE key >= ?1 AND key < ?2 ORDER BY key LIMIT ?3)";
    remove(connection, space, statement).await
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
               FROM spaces WHERE name IS NOT NULL AND (?2 OR language_embedding IS NULL)) AS p",
    )
    .bind(target.unwrap_or(0))
    .bind(order.every_language)
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
