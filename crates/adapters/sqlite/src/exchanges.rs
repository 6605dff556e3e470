//! Exchanges under way.

pub mod conversations;
pub mod secrets;

use async_trait::async_trait;
use memfleet_columns::{json, time, to_json};
use memfleet_domain::Scope;
use memfleet_domain::ids::{ExchangeName, SessionId, SpaceId, TenantId};
use memfleet_domain::time::Timestamp;
use memfleet_ports::conversations::{Conversation, Sought};
use memfleet_ports::exchanges::{Entry, Exchange, Exchanges, Kept, Secret, Written};
use memfleet_ports::store::Result;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::failure::{Failure, Outcome};
use crate::mentions::{EXCHANGES, INJECTIONS};
use crate::store::{SqliteStore, Write};
use crate::{injections, scrub, tombstones};

#[async_trait]
impl Exchanges for SqliteStore {
    async fn get(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        name: &ExchangeName,
        now: Timestamp,
    ) -> Result<Option<Kept>> {
        let kept = find(&mut *self.look_up().await?, tenant, session, name).await?;
        Ok(kept.filter(|kept| kept.exchange.expires_at > now))
    }

    async fn keep(&self, tenant: &TenantId, entry: Entry<'_>) -> Result<Written> {
        entry.check()?;
        let mut write = match entry.injection {
            Some(_) => self.write().await?,
            None => self.briefly().await?,
        };
        let mut written = Written::default();
        if let Some((exchange, expected)) = entry.exchange {
            written = write_exchange(&mut write, tenant, exchange, expected).await?;
        }
        if let Some(conversation) = entry.conversation {
            conversations::put(&mut write, tenant, conversation).await?;
        }
        if let Some(injection) = entry.injection {
            injections::append(&mut write, tenant, injection).await?;
        }
        let waiting = [
            EXCHANGES.waiting(&mut write).await?,
            INJECTIONS.waiting(&mut write).await?,
        ];
        write.commit().await?;
        self.list_soon(&EXCHANGES, waiting[0]);
        self.list_soon(&INJECTIONS, waiting[1]);
        Ok(written)
    }

    async fn conversations(
        &self,
        tenant: &TenantId,
        sought: &Sought,
        now: Timestamp,
    ) -> Result<Vec<Conversation>> {
        let mut read = self.read().await?;
        Ok(conversations::find(&mut read, tenant, sought, now).await?)
    }

    async fn secret(&self, tenant: &TenantId, space: Option<&SpaceId>) -> Result<Secret> {
        let known = secrets::find(&mut *self.look_up().await?, tenant, space).await?;
        if let Some(known) = known {
            return Ok(known);
        }
        let mut write = self.write().await?;
        let made = secrets::make(&mut write, tenant, space).await?;
        write.commit().await?;
        Ok(made)
    }

    async fn states(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<String>> {
        let states = sqlx::query_scalar(
            "SELECT state FROM exchanges WHERE tenant = ? AND session = ? AND expires_at > ? AND NOT forgotten
             ORDER BY updated_at DESC, id DESC LIMIT ?",
        )
        .bind(tenant.as_str())
        .bind(session.as_str())
        .bind(now.timestamp_micros())
        .bind(limit)
        .fetch_all(&mut *self.read().await?)
        .await
        .map_err(Failure::from)?;
        Ok(states)
    }

    async fn session_tokens(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        now: Timestamp,
    ) -> Result<u64> {
        let tokens: i64 = sqlx::query_scalar(
            "SELECT coalesce(sum(tokens), 0) FROM exchanges WHERE tenant = ? AND session = ? AND expires_at > ?",
        )
        .bind(tenant.as_str())
        .bind(session.as_str())
        .bind(now.timestamp_micros())
        .fetch_one(&mut *self.read().await?)
        .await
        .map_err(Failure::from)?;
        Ok(tokens.cast_unsigned())
    }

    async fn bound(&self, tenant: &TenantId, most: u32) -> Result<u64> {
        let mut write = self.write().await?;
        let mut gone = 0;
        for delete in [
            "DELETE FROM exchanges WHERE id IN (SELECT id FROM exchanges WHERE tenant = ?1 AND expires_at <= (
                 SELECT expires_at FROM exchanges WHERE tenant = ?1 ORDER BY expires_at DESC LIMIT 1 OFFSET ?2)
             ORDER BY expires_at LIMIT ?3)",
            "DELETE FROM conversations WHERE id IN (SELECT id FROM conversations WHERE tenant = ?1 AND expires_at <= (
                 SELECT expires_at FROM conversations WHERE tenant = ?1 ORDER BY expires_at DESC LIMIT 1 OFFSET ?2)
             ORDER BY expires_at LIMIT ?3)",
        ] {
            let done = sqlx::query(delete)
                .bind(tenant.as_str())
                .bind(most)
                .bind(injections::BOUNDED)
                .execute(&mut *write);
            gone += done.await.map_err(Failure::from)?.rows_affected();
        }
        // No scrub: their words are of turns, and a forget of these scrubs the whole file.
        write.commit().await?;
        Ok(gone)
    }

    async fn expire(&self, now: Timestamp) -> Result<u64> {
        let mut write = self.write().await?;
        let mut gone = 0;
        for delete in [
            "DELETE FROM exchanges WHERE expires_at <= ?",
            "DELETE FROM conversations WHERE expires_at <= ?",
        ] {
            let done = sqlx::query(delete)
                .bind(now.timestamp_micros())
                .execute(&mut *write);
            gone += done.await.map_err(Failure::from)?.rows_affected();
        }
        if gone > 0 {
            scrub::due(&mut write).await?;
        }
        write.commit().await?;
        Ok(gone)
    }
}

/// Compare and swap, in the transaction of its caller.
async fn write_exchange(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    exchange: &Exchange,
    expected: Option<u64>,
) -> Result<Written> {
    let kept = find(connection, tenant, &exchange.session, &exchange.name).await?;
    let Some(version) = exchange.follows(kept.as_ref(), expected)? else {
        return Ok(kept.as_ref().map(Kept::written).unwrap_or_default());
    };
    let forgotten = tombstones::any(connection, tenant, &exchange.turns).await?;
    let written = Written { version, forgotten };
    put(connection, tenant, exchange, written).await?;
    Ok(written)
}

impl SqliteStore {
    /// A write for as long as an exchange lasts. Nobody waits for the disk: where the machine dies its last ones are lost, and so is the call that waits
    /// for the model; who asks again gets a block of its own.
    async fn briefly(&self) -> Outcome<Write> {
        self.shared.writers.begin_relaxed().await
    }
}

/// Takes the state of every exchange that names one of these turns of a space (an id list; any of its turns without one); whether there
/// was one.
pub async fn forget(
    connection: &mut SqliteConnection,
    scope: &Scope,
    turns: Option<&str>,
) -> Outcome<bool> {
    EXCHANGES.list_all(connection).await?;
    let named: Vec<i64> = sqlx::query_scalar(
        "SELECT DISTINCT exchange FROM exchange_turns WHERE tenant = ?1 AND space = ?2
             AND (?3 IS NULL OR turn IN (SELECT unhex(value, '-') FROM json_each(?3)))",
    )
    .bind(scope.tenant.as_str())
    .bind(scope.space.as_str())
    .bind(turns)
    .fetch_all(&mut *connection)
    .await?;
    let some = to_json(&named);
    for change in [
        "UPDATE exchanges SET state = '', turns = '[]', forgotten = 1, version = version + 1
         WHERE id IN (SELECT value FROM json_each(?))",
        "DELETE FROM exchange_turns WHERE exchange IN (SELECT value FROM json_each(?))",
    ] {
        sqlx::query(change)
            .bind(&some)
            .execute(&mut *connection)
            .await?;
    }
    Ok(!named.is_empty())
}

async fn find(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    session: &SessionId,
    name: &ExchangeName,
) -> Outcome<Option<Kept>> {
    let row = sqlx::query(
        "SELECT version, forgotten, state, tokens, turns, updated_at, expires_at, tally FROM exchanges
         WHERE tenant = ? AND session = ? AND name = ?",
    )
    .bind(tenant.as_str())
    .bind(session.as_str())
    .bind(name.as_str())
    .fetch_optional(connection)
    .await?;
    row.as_ref().map(|row| kept(row, session, name)).transpose()
}

fn kept(row: &SqliteRow, session: &SessionId, name: &ExchangeName) -> Outcome<Kept> {
    Ok(Kept {
        version: row.try_get::<i64, _>(0)?.cast_unsigned(),
        forgotten: row.try_get(1)?,
        exchange: Exchange {
            session: session.clone(),
            name: name.clone(),
            state: row.try_get(2)?,
            tokens: row.try_get(3)?,
            turns: json(row.try_get(4)?)?,
            updated_at: time(row.try_get(5)?)?,
            expires_at: time(row.try_get(6)?)?,
            tally: row.try_get(7)?,
        },
    })
}

/// Writes an exchange in place of what is there, without its state where that is forgotten.
async fn put(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    exchange: &Exchange,
    written: Written,
) -> Outcome<()> {
    let (state, turns) = match written.forgotten {
        true => ("", "[]".to_owned()),
        false => (exchange.state.as_str(), to_json(&exchange.turns)),
    };
    let id: i64 = sqlx::query_scalar(
        "INSERT INTO exchanges (tenant, session, name, version, forgotten, state, tokens, turns, updated_at, expires_at, tally)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (tenant, session, name) DO UPDATE SET version = excluded.version, forgotten = excluded.forgotten,
             state = excluded.state, tokens = excluded.tokens, turns = excluded.turns, updated_at = excluded.updated_at,
             expires_at = excluded.expires_at, tally = excluded.tally
         RETURNING id",
    )
    .bind(tenant.as_str())
    .bind(exchange.session.as_str())
    .bind(exchange.name.as_str())
    .bind(written.version.cast_signed())
    .bind(written.forgotten)
    .bind(state)
    .bind(exchange.tokens)
    .bind(&turns)
    .bind(exchange.updated_at.timestamp_micros())
    .bind(exchange.expires_at.timestamp_micros())
    .bind(&exchange.tally)
    .fetch_one(&mut *connection)
    .await?;
    name_turns(connection, id).await
}

/// What a forget finds the exchange by, instead of what it was found by before.
async fn name_turns(connection: &mut SqliteConnection, exchange: i64) -> Outcome<()> {
    for change in [
        "DELETE FROM exchange_turns WHERE exchange = ?",
        "INSERT OR IGNORE INTO unlisted_exchanges (exchange) VALUES (?)",
    ] {
        sqlx::query(change)
            .bind(exchange)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}
