//! A rebuild: facts that are ready and not in use, and the moment from which on they are.

use memfleet_columns::{json, to_json};
use memfleet_domain::Scope;
use memfleet_domain::derivation::{Change, Derivation};
use memfleet_ports::knowledge::{Rebuilding, Stage, Staging};
use sqlx::{Row, SqliteConnection};

use super::apply::Applying;
use super::read::{COLUMNS, derivation};
use crate::failure::Outcome;
use crate::scope;

/// Begins one, unless one is under way.
pub async fn begin(
    connection: &mut SqliteConnection,
    scope: &Scope,
) -> Outcome<Option<Rebuilding>> {
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(None);
    };
    sqlx::query("INSERT OR IGNORE INTO progress (space, stage, reached, goal) VALUES (?, ?, 0, ?)")
        .bind(space.id)
        .bind(Stage::Rebuild.name())
        .bind(space.head)
        .execute(&mut *connection)
        .await?;
    find(connection, space.id).await
}

/// The one of a space, by name.
pub async fn of(connection: &mut SqliteConnection, scope: &Scope) -> Outcome<Option<Rebuilding>> {
    match scope::find_alive(connection, scope).await? {
        Some(space) => find(connection, space.id).await,
        None => Ok(None),
    }
}

/// The one of a space.
pub async fn find(connection: &mut SqliteConnection, space: i64) -> Outcome<Option<Rebuilding>> {
    let row = sqlx::query(
        "SELECT reached, goal, (SELECT count(*) FROM staged s WHERE s.space = p.space AND s.document IS NOT NULL)
         FROM progress p WHERE space = ? AND goal IS NOT NULL",
    )
    .bind(space)
    .fetch_optional(connection)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let number = |index| row.try_get::<i64, _>(index).map(i64::cast_unsigned);
    Ok(Some(Rebuilding {
        reached: number(0)?,
        goal: number(1)?,
        staged: number(2)?,
    }))
}

/// Facts in use that an extractor made and that were not derived again.
pub async fn unconfirmed(
    connection: &mut SqliteConnection,
    scope: &Scope,
    limit: u32,
) -> Outcome<Vec<Derivation>> {
    let Some(space) = scope::find_alive(connection, scope).await? else {
        return Ok(Vec::new());
    };
    let mut query = sqlx::QueryBuilder::new(COLUMNS);
    query.push_bind(space.id);
    query.push(
        " AND d.kind = 0 AND d.known_until IS NULL AND coalesce(d.valid_from < d.valid_until, true)
          AND d.document ->> '$.origin.extracted' IS NOT NULL
          AND NOT EXISTS (SELECT 1 FROM staged s WHERE s.space = d.space AND s.id = d.id)
          AND d.first <= (SELECT goal FROM progress p WHERE p.space = d.space AND p.goal IS NOT NULL)
          ORDER BY d.first LIMIT ",
    );
    query.push_bind(limit);
    let rows = query.build().fetch_all(connection).await?;
    rows.iter().map(derivation).collect()
}

impl Applying<'_> {
    /// Notes what a rebuild found.
    pub(super) async fn stage(&mut self, staging: &Staging) -> Outcome<()> {
        sqlx::query(
            "INSERT OR IGNORE INTO staged (space, id) SELECT ?, unhex(value, '-') FROM json_each(?)",
        )
        .bind(self.space.id)
        .bind(to_json(&staging.confirmed))
        .execute(&mut *self.connection)
        .await?;
        for revision in &staging.new {
            let derivation = &revision.derivation;
            if self.is_known(derivation).await? {
                continue;
            }
            let passage = revision.passage.as_ref();
            let passage = passage.expect("a first version has something to be found by");
            let passage = self.put(passage).await?;
            sqlx::query("INSERT INTO staged (space, id, passage, document) VALUES (?, ?, ?, ?)")
                .bind(self.space.id)
                .bind(derivation.id.as_bytes().as_slice())
                .bind(passage)
                .bind(to_json(derivation))
                .execute(&mut *self.connection)
                .await?;
            self.trace(derivation).await?;
        }
        Ok(())
    }

    /// Whether it is staged or in use.
    async fn is_known(&mut self, derivation: &Derivation) -> Outcome<bool> {
        let known = sqlx::query_scalar(
            "SELECT EXISTS (SELECT 1 FROM staged WHERE space = ?1 AND id = ?2)
                 OR EXISTS (SELECT 1 FROM derivations WHERE space = ?1 AND id = ?2)",
        );
        Ok(known
            .bind(self.space.id)
            .bind(derivation.id.as_bytes().as_slice())
            .fetch_one(&mut *self.connection)
            .await?)
    }

    /// From now on what is staged is in use, and the rebuild is over.
    pub(super) async fn publish(&mut self, change: &Change) -> Outcome<()> {
        let rows = sqlx::query(
            "SELECT document, passage FROM staged s WHERE space = ? AND document IS NOT NULL
                 AND NOT EXISTS (SELECT 1 FROM derivations d WHERE d.space = s.space AND d.id = s.id)",
        )
        .bind(self.space.id)
        .fetch_all(&mut *self.connection)
        .await?;
        if !rows.is_empty() {
            // A staged fact may be older than the place that is filled now.
            self.unembedded.note(self.space.slots, None);
            self.record(change).await?;
        }
        for row in rows {
            let staged: Derivation = json(row.try_get(0)?)?;
            let published = Derivation {
                change: change.id,
                ..staged
            };
            self.insert(&published, None, row.try_get(1)?, change.at)
                .await?;
        }
        for end in [
            "DELETE FROM staged WHERE space = ?",
            "DELETE FROM progress WHERE space = ? AND goal IS NOT NULL",
        ] {
            sqlx::query(end)
                .bind(self.space.id)
                .execute(&mut *self.connection)
                .await?;
        }
        Ok(())
    }
}
