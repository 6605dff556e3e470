//! Exchanges under way.

pub mod conversations;
pub mod secrets;
mod write;

use async_trait::async_trait;
use memfleet_columns::{json, time};
use memfleet_domain::Scope;
use memfleet_domain::ids::{ExchangeName, SessionId, SpaceId, TenantId};
use memfleet_domain::time::Timestamp;
use memfleet_ports::conversations::{Conversation, Sought};
use memfleet_ports::exchanges::{Entry, Exchange, Exchanges, Kept, Secret, Written};
use memfleet_ports::store::Result;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use crate::failure::Outcome;
use crate::injections;
use crate::rows::text;
use crate::store::{PostgresStore, twice};

/// The exchange `$3` of the session `$2`, for [`kept`].
macro_rules! select_exchange {
    () => {
        "SELECT version, forgotten, state, tokens, turns, updated_at, expires_at, tally FROM exchanges
         WHERE tenant = $1 AND session = $2 AND name = $3"
    };
}
pub(crate) use select_exchange;

#[async_trait]
impl Exchanges for PostgresStore {
    async fn get(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        name: &ExchangeName,
        now: Timestamp,
    ) -> Result<Option<Kept>> {
        let found = async {
            let mut read = self.read(tenant).await?;
            let row = sqlx::query(select_exchange!())
                .bind(tenant.as_str())
                .bind(session.as_str())
                .bind(name.as_str())
                .fetch_optional(&mut *read)
                .await?;
            let kept = row
                .as_ref()
                .map(|row| kept(row, session, name))
                .transpose()?;
            Ok(kept.filter(|kept| kept.exchange.expires_at > now))
        };
        self.ask("exchange", found).await
    }

    async fn keep(&self, tenant: &TenantId, entry: Entry<'_>) -> Result<Written> {
        entry.check()?;
        let attempt = || async {
            let mut write = self.write(tenant).await?;
            let mut written = Written::default();
            if let Some((exchange, expected)) = entry.exchange {
                written = write::write(&mut write, tenant, exchange, expected).await?;
            }
            if let Some(conversation) = entry.conversation {
                conversations::put(&mut write, tenant, conversation).await?;
            }
            if let Some(injection) = entry.injection {
                injections::append(&mut write, tenant, injection).await?;
            }
            write.commit().await?;
            Ok(written)
        };
        self.ask("keep_entry", twice(attempt)).await
    }

    async fn conversations(
        &self,
        tenant: &TenantId,
        sought: &Sought,
        now: Timestamp,
    ) -> Result<Vec<Conversation>> {
        let found = async {
            let mut read = self.read(tenant).await?;
            conversations::find(&mut read, tenant, sought, now).await
        };
        self.ask("conversations", found).await
    }

    async fn secret(&self, tenant: &TenantId, space: Option<&SpaceId>) -> Result<Secret> {
        let secret = async {
            let known = secrets::find(&mut *self.read(tenant).await?, tenant, space).await?;
            match known {
                Some(known) => Ok(known),
                None => {
                    let mut write = self.write(tenant).await?;
                    let made = secrets::make(&mut write, tenant, space).await?;
                    write.commit().await?;
                    Ok(made)
                }
            }
        };
        self.ask("secret", secret).await
    }

    async fn states(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<String>> {
        let states = async {
            let mut read = self.read(tenant).await?;
            let states: Vec<Vec<u8>> = sqlx::query_scalar(
                "SELECT state FROM exchanges WHERE tenant = $1 AND session = $2 AND expires_at > $3 AND NOT forgotten
                 ORDER BY updated_at DESC, id DESC LIMIT $4",
            )
            .bind(tenant.as_str())
            .bind(session.as_str())
            .bind(now.timestamp_micros())
            .bind(i64::from(limit))
            .fetch_all(&mut *read)
            .await?;
            states.into_iter().map(text).collect()
        };
        self.ask("exchange_states", states).await
    }

    async fn session_tokens(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        now: Timestamp,
    ) -> Result<u64> {
        let tokens = async {
            let mut read = self.read(tenant).await?;
            let tokens: i64 = sqlx::query_scalar(
                "SELECT coalesce(sum(tokens), 0)::bigint FROM exchanges
                 WHERE tenant = $1 AND session = $2 AND expires_at > $3",
            )
            .bind(tenant.as_str())
            .bind(session.as_str())
            .bind(now.timestamp_micros())
            .fetch_one(&mut *read)
            .await?;
            Ok(tokens.cast_unsigned())
        };
        self.ask("session_tokens", tokens).await
    }

    async fn bound(&self, tenant: &TenantId, most: u32) -> Result<u64> {
        let gone = async {
            let mut write = self.write(tenant).await?;
            let mut gone = 0;
            for function in [
                "SELECT bound_exchanges($1)",
                "SELECT bound_conversations($1)",
            ] {
                let removed: i64 = sqlx::query_scalar(function)
                    .bind(i64::from(most))
                    .fetch_one(&mut *write)
                    .await?;
                gone += removed.cast_unsigned();
            }
            write.commit().await?;
            Ok(gone)
        };
        self.ask("bound_exchanges", gone).await
    }

    async fn expire(&self, now: Timestamp) -> Result<u64> {
        let function = "SELECT expire_exchanges($1, $2)";
        let exchanges = self.expire_by("expire_exchanges", function, now).await?;
        let function = "SELECT expire_conversations($1, $2)";
        let conversations = self.expire_by("expire_conversations", function, now);
        Ok(exchanges + conversations.await?)
    }
}

/// Takes the state of every exchange that names one of these turns of a space, any of its turns where none are given; whether there was one.
/// The transaction has kept others from naming them since [`crate::tombstones::keep_others`].
pub async fn forget(
    connection: &mut PgConnection,
    scope: &Scope,
    turns: Option<&[Uuid]>,
) -> Outcome<bool> {
    let named: Vec<i64> = sqlx::query_scalar(
        "SELECT DISTINCT exchange FROM exchange_turns WHERE tenant = $1 AND space = $2
             AND ($3::uuid[] IS NULL OR turn = ANY ($3)) ORDER BY exchange",
    )
    .bind(scope.tenant.as_str())
    .bind(scope.space.as_str())
    .bind(turns)
    .fetch_all(&mut *connection)
    .await?;
    for change in [
        "UPDATE exchanges SET state = '', turns = '[]', forgotten = true, version = version + 1
         WHERE tenant = $1 AND id = ANY ($2)",
        "DELETE FROM exchange_turns WHERE tenant = $1 AND exchange = ANY ($2)",
    ] {
        sqlx::query(change)
            .bind(scope.tenant.as_str())
            .bind(&named)
            .execute(&mut *connection)
            .await?;
    }
    Ok(!named.is_empty())
}

fn kept(row: &PgRow, session: &SessionId, name: &ExchangeName) -> Outcome<Kept> {
    Ok(Kept {
        version: row.try_get::<i64, _>(0)?.cast_unsigned(),
        forgotten: row.try_get(1)?,
        exchange: Exchange {
            session: session.clone(),
            name: name.clone(),
            state: text(row.try_get(2)?)?,
            tokens: row.try_get::<i64, _>(3)? as u32,
            turns: json(row.try_get(4)?)?,
            updated_at: time(row.try_get(5)?)?,
            expires_at: time(row.try_get(6)?)?,
            tally: row.try_get(7)?,
        },
    })
}
