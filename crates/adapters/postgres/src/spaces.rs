//! The catalogue of spaces.

use async_trait::async_trait;
use memfleet_columns::{cut, from_token, json, name, space_key, time, to_json, to_token};
use memfleet_domain::Scope;
use memfleet_domain::embedding::{EmbeddingSpace, HeldEmbeddings};
use memfleet_domain::ids::{SessionId, SpaceId, TenantId};
use memfleet_domain::space::{LegalHold, Locale, Session, Space, SpaceSettings};
use memfleet_domain::time::Timestamp;
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::spaces::SpaceCatalog;
use memfleet_ports::store::{Result, StoreError};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use crate::failure::Outcome;
use crate::ledger::held;
use crate::scope::{self, space_id};
use crate::store::{PostgresStore, twice};

/// The columns that [`space`] reads.
macro_rules! space_columns {
    () => {
        "SELECT p.name, p.settings, p.created_at, s.sessions, s.turns, s.last_at, p.language,
             p.held_since, p.held_reason
         FROM spaces p CROSS JOIN LATERAL (
             SELECT count(*), coalesce(sum(s.turns), 0)::bigint, max(s.last_at)
             FROM sessions s WHERE s.tenant = p.tenant AND s.space = p.id) s(sessions, turns, last_at)"
    };
}

#[async_trait]
impl SpaceCatalog for PostgresStore {
    async fn put(&self, scope: &Scope, settings: &SpaceSettings, now: Timestamp) -> Result<Space> {
        let attempt = || async {
            let mut write = self.write(&scope.tenant).await?;
            let space = put(&mut write, scope, settings, now).await?;
            write.commit().await?;
            Ok(space)
        };
        self.ask("put_space", twice(attempt)).await
    }

    async fn hold(&self, scope: &Scope, hold: Option<&LegalHold>) -> Result<Option<Space>> {
        let attempt = || async {
            let mut write = self.write(&scope.tenant).await?;
            let space = set_hold(&mut write, scope, hold).await?;
            write.commit().await?;
            Ok(space)
        };
        self.ask("hold_space", twice(attempt)).await
    }

    async fn get(&self, scope: &Scope) -> Result<Option<Space>> {
        let space = async {
            let mut read = self.read(&scope.tenant).await?;
            find(&mut read, scope).await
        };
        self.ask("space", space).await
    }

    async fn locale(&self, scope: &Scope) -> Result<Option<Locale>> {
        let locale = async {
            let mut read = self.read(&scope.tenant).await?;
            let found = scope::find_locale(&mut read, scope).await?;
            Ok(found.map(|(_, locale)| locale))
        };
        self.ask("locale", locale).await
    }

    async fn embeddings(&self, scope: &Scope) -> Result<HeldEmbeddings> {
        let held = async {
            let mut read = self.read(&scope.tenant).await?;
            let space = scope::find(&mut read, scope).await?;
            held(self, &mut read, space).await
        };
        self.ask("embeddings", held).await
    }

    async fn locale_and_embeddings(
        &self,
        scope: &Scope,
    ) -> Result<Option<(Locale, HeldEmbeddings)>> {
        let both = async {
            let mut read = self.read(&scope.tenant).await?;
            let Some((space, locale)) = scope::find_locale(&mut read, scope).await? else {
                return Ok(None);
            };
            Ok(Some((locale, held(self, &mut read, Some(space)).await?)))
        };
        self.ask("locale_and_embeddings", both).await
    }

    async fn name_embedding(&self, space: &EmbeddingSpace) -> Result<()> {
        let attempt = || self.ensure_named(space);
        self.ask("name_embedding", twice(attempt)).await
    }

    async fn list(
        &self,
        tenant: &TenantId,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Space>> {
        let page = async {
            let mut read = self.read(tenant).await?;
            list(&mut read, tenant, limit, after).await
        };
        self.ask("spaces", page).await
    }

    async fn sessions(
        &self,
        scope: &Scope,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Session>> {
        let page = async {
            let mut read = self.read(&scope.tenant).await?;
            sessions(&mut read, scope, limit, after).await
        };
        self.ask("sessions", page).await
    }
}

async fn put(
    connection: &mut PgConnection,
    scope: &Scope,
    settings: &SpaceSettings,
    now: Timestamp,
) -> Outcome<Space> {
    let row = scope::lock_or_make(connection, scope).await?;
    sqlx::query(
        "UPDATE spaces SET settings = $3, retention_days = $4, retention_turns = $5, retention_superseded_days = $6, name = $7,
             created_at = CASE WHEN name IS NULL THEN $8 ELSE created_at END
         WHERE tenant = $1 AND id = $2",
    )
    .bind(scope.tenant.as_str())
    .bind(row.id)
    .bind(to_json(settings))
    .bind(settings.retention_days.map(i64::from))
    .bind(settings.retention_turns.map(i64::from))
    .bind(settings.retention_superseded_days.map(i64::from))
    .bind(scope.space.as_str())
    .bind(now.timestamp_micros())
    .execute(&mut *connection)
    .await?;
    let space = find(connection, scope).await?;
    let gone = || StoreError::Unexpected("a space is gone that was just written".into());
    Ok(space.ok_or_else(gone)?)
}

/// Waits for an erasure of the space that is under way, and has the next one wait.
async fn set_hold(
    connection: &mut PgConnection,
    scope: &Scope,
    hold: Option<&LegalHold>,
) -> Outcome<Option<Space>> {
    sqlx::query(
        "UPDATE spaces SET held_since = CASE WHEN $3::bigint IS NOT NULL THEN coalesce(held_since, $3) END, held_reason = $4
         WHERE tenant = $1 AND key = $2 AND name IS NOT NULL",
    )
    .bind(scope.tenant.as_str())
    .bind(space_key(scope))
    .bind(hold.map(|hold| hold.since.timestamp_micros()))
    .bind(hold.map(|hold| hold.reason.as_str()))
    .execute(&mut *connection)
    .await?;
    find(connection, scope).await
}

async fn find(connection: &mut PgConnection, scope: &Scope) -> Outcome<Option<Space>> {
    let row = sqlx::query(concat!(
        space_columns!(),
        " WHERE p.tenant = $1 AND p.key = $2 AND p.name IS NOT NULL"
    ))
    .bind(scope.tenant.as_str())
    .bind(space_key(scope))
    .fetch_optional(connection)
    .await?;
    row.as_ref().map(space).transpose()
}

async fn list(
    connection: &mut PgConnection,
    tenant: &TenantId,
    limit: u32,
    after: Option<&PageToken>,
) -> Outcome<Page<Space>> {
    // A token is the name of a space, and what is none was not given out.
    let after = after.map(|token| SpaceId::new(token.0.as_str()));
    let after = after.transpose().map_err(|_| StoreError::PageToken)?;
    let rows = sqlx::query(concat!(
        space_columns!(),
        " WHERE p.tenant = $1 AND p.name > $2 ORDER BY p.name LIMIT $3"
    ))
    .bind(tenant.as_str())
    .bind(after.as_ref().map_or("", SpaceId::as_str))
    .bind(i64::from(limit) + 1)
    .fetch_all(connection)
    .await?;
    let spaces = rows.iter().map(space).collect::<Outcome<Vec<_>>>()?;
    Ok(cut(spaces, limit, |space| PageToken(space.id.to_string())))
}

async fn sessions(
    connection: &mut PgConnection,
    scope: &Scope,
    limit: u32,
    after: Option<&PageToken>,
) -> Outcome<Page<Session>> {
    let [first_at, id] = after.map_or(Ok([i64::MIN, i64::MIN]), from_token)?;
    let rows = sqlx::query(concat!(
        "SELECT name, turns, first_at, last_at, id FROM sessions WHERE tenant = $1 AND space = ",
        space_id!(),
        " AND (first_at, id) > ($3, $4) ORDER BY first_at, id LIMIT $5"
    ))
    .bind(scope.tenant.as_str())
    .bind(space_key(scope))
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

fn hold_of(row: &PgRow) -> Outcome<Option<LegalHold>> {
    let Some(since) = row.try_get(7)? else {
        return Ok(None);
    };
    Ok(Some(LegalHold {
        since: time(since)?,
        reason: row.try_get(8)?,
    }))
}

fn space(row: &PgRow) -> Outcome<Space> {
    Ok(Space {
        id: name(SpaceId::new(row.try_get::<&str, _>(0)?))?,
        settings: json(row.try_get(1)?)?,
        created_at: time(row.try_get(2)?)?,
        sessions: row.try_get::<i64, _>(3)? as u64,
        turns: row.try_get::<i64, _>(4)? as u64,
        last_turn_at: row.try_get::<Option<i64>, _>(5)?.map(time).transpose()?,
        first_language: row.try_get(6)?,
        hold: hold_of(row)?,
    })
}

fn session(row: &PgRow) -> Outcome<Session> {
    Ok(Session {
        id: name(SessionId::new(row.try_get::<&str, _>(0)?))?,
        turns: row.try_get::<i64, _>(1)? as u64,
        first_turn_at: time(row.try_get(2)?)?,
        last_turn_at: time(row.try_get(3)?)?,
    })
}
