//! The catalogue of spaces.

use async_trait::async_trait;
use memfleet_columns::{cut, from_token, json, name, space_key, time, to_json, to_token};
use memfleet_domain::Scope;
use memfleet_domain::embedding::HeldEmbeddings;
use memfleet_domain::ids::{SessionId, SpaceId, TenantId};
use memfleet_domain::space::{LegalHold, Locale, Session, Space, SpaceSettings};
use memfleet_domain::time::Timestamp;
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::spaces::SpaceCatalog;
use memfleet_ports::store::{Result, StoreError};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::failure::{Failure, Outcome};
use crate::ledger::vectors;
use crate::scope;
use crate::store::SqliteStore;

/// The columns that [`space`] reads.
macro_rules! space_columns {
    () => {
        "SELECT p.name, p.settings, p.created_at, count(s.id), coalesce(sum(s.turns), 0), max(s.last_at), p.language,
             p.held_since, p.held_reason
         FROM spaces p LEFT JOIN sessions s ON s.space = p.id"
    };
}

#[async_trait]
impl SpaceCatalog for SqliteStore {
    async fn put(&self, scope: &Scope, settings: &SpaceSettings, now: Timestamp) -> Result<Space> {
        let mut write = self.write().await?;
        let row = scope::ensure(&mut write, scope, now).await?;
        sqlx::query("UPDATE spaces SET settings = ? WHERE id = ?")
            .bind(to_json(settings))
            .bind(row.id)
            .execute(&mut *write)
            .await
            .map_err(Failure::from)?;
        let space = find(&mut write, scope).await?;
        write.commit().await?;
        space.ok_or_else(|| StoreError::Unexpected("a space is gone that was just written".into()))
    }

    async fn hold(&self, scope: &Scope, hold: Option<&LegalHold>) -> Result<Option<Space>> {
        let mut write = self.write().await?;
        sqlx::query(
            "UPDATE spaces SET held_since = iif(?1 IS NULL, NULL, coalesce(held_since, ?1)), held_reason = ?2
             WHERE key = ?3 AND name IS NOT NULL",
        )
        .bind(hold.map(|hold| hold.since.timestamp_micros()))
        .bind(hold.map(|hold| hold.reason.as_str()))
        .bind(space_key(scope))
        .execute(&mut *write)
        .await
        .map_err(Failure::from)?;
        let space = find(&mut write, scope).await?;
        write.commit().await?;
        Ok(space)
    }

    async fn get(&self, scope: &Scope) -> Result<Option<Space>> {
        Ok(find(&mut *self.read_once().await?, scope).await?)
    }

    async fn locale(&self, scope: &Scope) -> Result<Option<Locale>> {
        let mut read = self.look_up().await?;
        Ok(locale(&mut read, scope).await?)
    }

    async fn embeddings(&self, scope: &Scope) -> Result<HeldEmbeddings> {
        let mut read = self.look_up().await?;
        Ok(vectors::held(&mut read, scope).await?)
    }

    async fn locale_and_embeddings(
        &self,
        scope: &Scope,
    ) -> Result<Option<(Locale, HeldEmbeddings)>> {
        let mut read = self.look_up().await?;
        let Some(locale) = locale(&mut read, scope).await? else {
            return Ok(None);
        };
        Ok(Some((locale, vectors::held(&mut read, scope).await?)))
    }

    async fn list(
        &self,
        tenant: &TenantId,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Space>> {
        let mut read = self.read().await?;
        let after = after.map_or("", |token| token.0.as_str());
        let rows = sqlx::query(concat!(
            space_columns!(),
            " WHERE p.tenant = ? AND p.name > ? GROUP BY p.id ORDER BY p.name LIMIT ?"
        ))
        .bind(tenant.as_str())
        .bind(after)
        .bind(i64::from(limit) + 1)
        .fetch_all(&mut *read)
        .await
        .map_err(Failure::from)?;
        let spaces = rows.iter().map(space).collect::<Outcome<Vec<_>>>()?;
        Ok(cut(spaces, limit, |space| PageToken(space.id.to_string())))
    }

    async fn sessions(
        &self,
        scope: &Scope,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Session>> {
        Ok(sessions(&mut *self.read().await?, scope, limit, after).await?)
    }
}

async fn find(connection: &mut SqliteConnection, scope: &Scope) -> Outcome<Option<Space>> {
    let row = sqlx::query(concat!(
        space_columns!(),
        " WHERE p.key = ? AND p.name IS NOT NULL GROUP BY p.id"
    ))
    .bind(space_key(scope))
    .fetch_optional(connection)
    .await?;
    row.as_ref().map(space).transpose()
}

async fn locale(connection: &mut SqliteConnection, scope: &Scope) -> Outcome<Option<Locale>> {
    let row =
        sqlx::query("SELECT settings, language FROM spaces WHERE key = ? AND name IS NOT NULL")
            .bind(space_key(scope))
            .fetch_optional(connection)
            .await?;
    let Some(row) = row else { return Ok(None) };
    let settings: SpaceSettings = json(row.try_get(0)?)?;
    let first: Option<String> = row.try_get(1)?;
    Ok(Some(Locale {
        language: settings.language.or(first),
        time_zone: settings.time_zone,
    }))
}

async fn sessions(
    connection: &mut SqliteConnection,
    scope: &Scope,
    limit: u32,
    after: Option<&PageToken>,
) -> Outcome<Page<Session>> {
    let [first_at, id] = after.map_or(Ok([i64::MIN, i64::MIN]), from_token)?;
    let Some(space) = scope::find(connection, scope).await? else {
        return Ok(cut(Vec::new(), limit, |_| {
            unreachable!("there is no last item")
        }));
    };
    let rows = sqlx::query(
        "SELECT name, turns, first_at, last_at, id FROM sessions
         WHERE space = ? AND (first_at, id) > (?, ?) ORDER BY first_at, id LIMIT ?",
    )
    .bind(space.id)
    .bind(first_at)
    .bind(id)
    .bind(i64::from(limit) + 1)
    .fetch_all(connection)
    .await?;
    let sessions = rows
        .iter()
        .map(|row| Ok((session(row)?, row.try_get::<i64, _>(4)?)))
        .collect::<Outcome<Vec<_>>>()?;
    let page = cut(sessions, limit, |(session, id)| {
        to_token([session.first_turn_at.timestamp_micros(), *id])
    });
    Ok(Page {
        items: page.items.into_iter().map(|(session, _)| session).collect(),
        next: page.next,
    })
}

fn hold(row: &SqliteRow) -> Outcome<Option<LegalHold>> {
    let Some(since) = row.try_get(7)? else {
        return Ok(None);
    };
    Ok(Some(LegalHold {
        since: time(since)?,
        reason: row.try_get(8)?,
    }))
}

fn space(row: &SqliteRow) -> Outcome<Space> {
    Ok(Space {
        id: name(SpaceId::new(row.try_get::<&str, _>(0)?))?,
        settings: json(row.try_get(1)?)?,
        created_at: time(row.try_get(2)?)?,
        sessions: row.try_get::<i64, _>(3)? as u64,
        turns: row.try_get::<i64, _>(4)? as u64,
        last_turn_at: row.try_get::<Option<i64>, _>(5)?.map(time).transpose()?,
        first_language: row.try_get(6)?,
        hold: hold(row)?,
    })
}

fn session(row: &SqliteRow) -> Outcome<Session> {
    Ok(Session {
        id: name(SessionId::new(row.try_get::<&str, _>(0)?))?,
        turns: row.try_get::<i64, _>(1)? as u64,
        first_turn_at: time(row.try_get(2)?)?,
        last_turn_at: time(row.try_get(3)?)?,
    })
}
