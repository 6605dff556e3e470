//! What entered which prompt.

mod list;

use async_trait::async_trait;
use memfleet_columns::{
    GrowingPage, from_injection_token, json, name, time, to_block_hash, to_injection_id,
    to_injection_token, to_json,
};
use memfleet_domain::Scope;
use memfleet_domain::ids::{ExchangeName, InjectionId, SessionId, SpaceId, TenantId, TurnId};
use memfleet_domain::time::Timestamp;
use memfleet_ports::injections::{Injection, InjectionFilter, Injections};
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::store::Result;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::failure::{Failure, Outcome};
use crate::mentions::INJECTIONS;
use crate::scrub;
use crate::store::SqliteStore;
use crate::tombstones;

/// Rows that one look at a tenant's number removes.
pub const BOUNDED: u32 = 1_000;

/// What [`injection`] reads of `injections i`.
macro_rules! select_injection {
    () => {
        "SELECT i.id, i.at, i.caller, i.request_id, i.session, i.exchange, i.spaces, i.decision, i.block, i.block_hash, i.record, i.turns,
             i.expires_at, i.forgotten"
    };
}

#[async_trait]
impl Injections for SqliteStore {
    async fn append(&self, tenant: &TenantId, injections: &[Injection]) -> Result<()> {
        injections.iter().try_for_each(Injection::check)?;
        let mut write = self.write().await?;
        for injection in injections {
            append(&mut write, tenant, injection).await?;
        }
        let waiting = INJECTIONS.waiting(&mut write).await?;
        write.commit().await?;
        self.list_soon(&INJECTIONS, waiting);
        Ok(())
    }

    async fn get(&self, tenant: &TenantId, id: InjectionId) -> Result<Option<Injection>> {
        let row = sqlx::query(concat!(
            select_injection!(),
            " FROM injections i WHERE i.tenant = ? AND i.id = ?"
        ))
        .bind(tenant.as_str())
        .bind(id.as_bytes().as_slice())
        .fetch_optional(&mut *self.read().await?)
        .await
        .map_err(Failure::from)?;
        Ok(row.as_ref().map(injection).transpose()?)
    }

    async fn list(
        &self,
        tenant: &TenantId,
        filter: &InjectionFilter,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Injection>> {
        self.list_turns_for(filter).await?;
        let place = from_injection_token(after)?;
        let mut read = self.read().await?;
        let mut query = list::query(
            "SELECT i.key",
            tenant,
            filter,
            place,
            limit.saturating_add(1),
        );
        let keys = query
            .build_query_scalar::<i64>()
            .fetch_all(&mut *read)
            .await;
        let mut keys = keys.map_err(Failure::from)?.into_iter();
        let mut page = GrowingPage::new(limit);
        // One at a time: rows are read ahead of a stream, and each may be large.
        while !page.is_over()
            && let Some(key) = keys.next()
        {
            let row = sqlx::query(concat!(
                select_injection!(),
                " FROM injections i WHERE i.key = ?"
            ));
            let row = row.bind(key).fetch_optional(&mut *read).await;
            if let Some(row) = row.map_err(Failure::from)? {
                let injection = injection(&row)?;
                let token = to_injection_token(injection.at, injection.id);
                let bytes = injection.bytes();
                page.add(injection, bytes, token);
            }
        }
        Ok(page.done())
    }

    async fn turns_given(
        &self,
        tenant: &TenantId,
        filter: &InjectionFilter,
        limit: u32,
    ) -> Result<Vec<(SpaceId, TurnId)>> {
        self.list_turns_for(filter).await?;
        let newest = from_injection_token(None)?;
        let mut query = list::query("SELECT i.turns", tenant, filter, newest, limit);
        let rows = query.build().fetch_all(&mut *self.read().await?).await;
        let rows = rows.map_err(Failure::from)?;
        let named = rows.iter().map(turns).collect::<Outcome<Vec<_>>>()?;
        Ok(named.concat())
    }

    async fn bound(&self, tenant: &TenantId, most: u32) -> Result<u64> {
        let mut write = self.write().await?;
        let gone = sqlx::query(
            "DELETE FROM injections WHERE key IN (SELECT key FROM injections i WHERE tenant = ?1 AND at <= (
                 SELECT at FROM injections WHERE tenant = ?1 ORDER BY at DESC, id DESC LIMIT 1 OFFSET ?2)
             AND NOT EXISTS (
                 SELECT 1 FROM injection_spaces n JOIN spaces s ON s.tenant = n.tenant AND s.name = n.space
                 WHERE n.injection = i.key AND s.held_since IS NOT NULL)
             ORDER BY at, id LIMIT ?3)",
        )
        .bind(tenant.as_str())
        .bind(most)
        .bind(BOUNDED)
        .execute(&mut *write)
        .await
        .map_err(Failure::from)?;
        // No scrub: their words are of turns, and a forget of these scrubs the whole file.
        write.commit().await?;
        Ok(gone.rows_affected())
    }

    async fn expire(&self, now: Timestamp) -> Result<u64> {
        let mut write = self.write().await?;
        let gone = sqlx::query(
            "DELETE FROM injections WHERE expires_at <= ? AND NOT EXISTS (
                 SELECT 1 FROM injection_spaces n JOIN spaces s ON s.tenant = n.tenant AND s.name = n.space
                 WHERE n.injection = injections.key AND s.held_since IS NOT NULL)",
        )
        .bind(now.timestamp_micros())
        .execute(&mut *write)
        .await
        .map_err(Failure::from)?;
        if gone.rows_affected() > 0 {
            scrub::due(&mut write).await?;
        }
        write.commit().await?;
        Ok(gone.rows_affected())
    }
}

impl SqliteStore {
    /// Has every turn listed, where somebody looks for one.
    async fn list_turns_for(&self, filter: &InjectionFilter) -> Outcome<()> {
        if filter.turn.is_none() || INJECTIONS.waiting(&mut *self.read().await?).await? == 0 {
            return Ok(());
        }
        self.list(&INJECTIONS).await
    }
}

/// Takes block and hash of every injection that names one of these turns (an id list) of a space.
pub async fn forget(connection: &mut SqliteConnection, scope: &Scope, turns: &str) -> Outcome<()> {
    INJECTIONS.list_all(connection).await?;
    sqlx::query(
        "UPDATE injections SET block = NULL, block_hash = NULL, forgotten = 1 WHERE NOT forgotten AND key IN (
             SELECT injection FROM injection_turns WHERE tenant = ? AND space = ?
                 AND turn IN (SELECT unhex(value, '-') FROM json_each(?)))",
    )
    .bind(scope.tenant.as_str())
    .bind(scope.space.as_str())
    .bind(turns)
    .execute(connection)
    .await?;
    Ok(())
}

/// The same of every injection that names the space; whether there was one.
pub async fn of_space(connection: &mut SqliteConnection, scope: &Scope) -> Outcome<bool> {
    let taken = sqlx::query(
        "UPDATE injections SET block = NULL, block_hash = NULL, forgotten = 1 WHERE NOT forgotten AND key IN (
             SELECT injection FROM injection_spaces WHERE tenant = ? AND space = ?)",
    )
    .bind(scope.tenant.as_str())
    .bind(scope.space.as_str())
    .execute(connection)
    .await?;
    Ok(taken.rows_affected() > 0)
}

/// Adds an injection, in the transaction of its caller.
pub async fn append(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    injection: &Injection,
) -> Outcome<()> {
    let gone = tombstones::any(connection, tenant, &injection.turns).await?;
    let forgotten = injection.forgotten || gone;
    let key: Option<i64> = sqlx::query_scalar(
        "INSERT INTO injections (tenant, id, at, caller, request_id, session, exchange, spaces, decision, block, block_hash, record,
             turns, expires_at, forgotten)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (tenant, id) DO NOTHING RETURNING key",
    )
    .bind(tenant.as_str())
    .bind(injection.id.as_bytes().as_slice())
    .bind(injection.at.timestamp_micros())
    .bind(&injection.caller)
    .bind(&injection.request_id)
    .bind(injection.session.as_ref().map(SessionId::as_str))
    .bind(injection.exchange.as_ref().map(ExchangeName::as_str))
    .bind(to_json(&injection.spaces))
    .bind(&injection.decision)
    .bind(injection.block.as_ref().filter(|_| !forgotten))
    .bind(injection.block_hash.as_ref().filter(|_| !forgotten).map(<[u8; 32]>::as_slice))
    .bind(&injection.record)
    .bind(to_json(&injection.turns))
    .bind(injection.expires_at.map(|at| at.timestamp_micros()))
    .bind(forgotten)
    .fetch_optional(&mut *connection)
    .await?;
    match key {
        Some(key) => name_places(connection, tenant, injection, key).await,
        None => Ok(()),
    }
}

/// What it is found by.
async fn name_places(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    injection: &Injection,
    key: i64,
) -> Outcome<()> {
    sqlx::query(
        "INSERT INTO injection_spaces (tenant, space, at, id, injection) SELECT ?1, value, ?2, ?3, ?4 FROM json_each(?5)",
    )
    .bind(tenant.as_str())
    .bind(injection.at.timestamp_micros())
    .bind(injection.id.as_bytes().as_slice())
    .bind(key)
    .bind(to_json(&injection.all_spaces()))
    .execute(&mut *connection)
    .await?;
    sqlx::query("INSERT INTO unlisted_injections (injection) VALUES (?)")
        .bind(key)
        .execute(&mut *connection)
        .await?;
    Ok(())
}

/// The turns of a row that has nothing else.
fn turns(row: &SqliteRow) -> Outcome<Vec<(SpaceId, TurnId)>> {
    Ok(json(row.try_get(0)?)?)
}

fn injection(row: &SqliteRow) -> Outcome<Injection> {
    let session: Option<&str> = row.try_get(4)?;
    let exchange: Option<&str> = row.try_get(5)?;
    let hash: Option<&[u8]> = row.try_get(9)?;
    Ok(Injection {
        id: to_injection_id(row.try_get(0)?)?,
        at: time(row.try_get(1)?)?,
        caller: row.try_get(2)?,
        request_id: row.try_get(3)?,
        session: session.map(|text| name(SessionId::new(text))).transpose()?,
        exchange: exchange
            .map(|text| name(ExchangeName::new(text)))
            .transpose()?,
        spaces: json::<Vec<SpaceId>>(row.try_get(6)?)?,
        decision: row.try_get(7)?,
        block: row.try_get(8)?,
        block_hash: hash.map(to_block_hash).transpose()?,
        record: row.try_get(10)?,
        turns: json(row.try_get(11)?)?,
        expires_at: row.try_get::<Option<i64>, _>(12)?.map(time).transpose()?,
        forgotten: row.try_get(13)?,
    })
}
