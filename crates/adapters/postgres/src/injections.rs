//! What entered which prompt.

mod list;

use async_trait::async_trait;
use futures::TryStreamExt;
use memfleet_columns::{
    GrowingPage, from_injection_token, json, name, time, to_block_hash, to_injection_token, to_json,
};
use memfleet_domain::Scope;
use memfleet_domain::ids::{ExchangeName, InjectionId, SessionId, SpaceId, TenantId, TurnId};
use memfleet_domain::time::Timestamp;
use memfleet_ports::injections::{Injection, InjectionFilter, Injections};
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::store::Result;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use crate::failure::Outcome;
use crate::rows::{from_pairs, text};
use crate::store::{PostgresStore, twice};
use crate::tombstones;

/// What [`injection`] reads of `injections i`.
macro_rules! select_injection {
    () => {
        "SELECT i.id, i.at, i.caller, i.request_id, i.session, i.exchange, i.spaces, i.decision, i.block, i.block_hash, i.record, i.turns,
             i.expires_at, i.forgotten"
    };
}

#[async_trait]
impl Injections for PostgresStore {
    async fn append(&self, tenant: &TenantId, injections: &[Injection]) -> Result<()> {
        injections.iter().try_for_each(Injection::check)?;
        let attempt = || async {
            let mut write = self.write(tenant).await?;
            for injection in injections {
                append(&mut write, tenant, injection).await?;
            }
            write.commit().await
        };
        self.ask("append_injections", twice(attempt)).await
    }

    async fn get(&self, tenant: &TenantId, id: InjectionId) -> Result<Option<Injection>> {
        let found = async {
            let mut read = self.read(tenant).await?;
            let row = sqlx::query(concat!(
                select_injection!(),
                " FROM injections i WHERE i.tenant = $1 AND i.id = $2"
            ))
            .bind(tenant.as_str())
            .bind(from_injection_id(id))
            .fetch_optional(&mut *read)
            .await?;
            row.as_ref().map(injection).transpose()
        };
        self.ask("injection", found).await
    }

    async fn list(
        &self,
        tenant: &TenantId,
        filter: &InjectionFilter,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Injection>> {
        let place = from_injection_token(after)?;
        let listed = async {
            let mut read = self.read(tenant).await?;
            let select = select_injection!();
            let mut query = list::query(select, tenant, filter, place, limit.saturating_add(1));
            let mut rows = query.build().fetch(&mut *read);
            let mut page = GrowingPage::new(limit);
            while !page.is_over()
                && let Some(row) = rows.try_next().await?
            {
                let injection = injection(&row)?;
                let token = to_injection_token(injection.at, injection.id);
                let bytes = injection.bytes();
                page.add(injection, bytes, token);
            }
            Ok(page.done())
        };
        self.ask("injections", listed).await
    }

    async fn turns_given(
        &self,
        tenant: &TenantId,
        filter: &InjectionFilter,
        limit: u32,
    ) -> Result<Vec<(SpaceId, TurnId)>> {
        let newest = from_injection_token(None)?;
        let read = async {
            let mut read = self.read(tenant).await?;
            let mut query = list::query("SELECT i.turns", tenant, filter, newest, limit);
            let rows = query.build().fetch_all(&mut *read).await?;
            let named = rows.iter().map(turns).collect::<Outcome<Vec<_>>>()?;
            Ok(named.concat())
        };
        self.ask("injected_turns", read).await
    }

    async fn bound(&self, tenant: &TenantId, most: u32) -> Result<u64> {
        let gone = async {
            let mut write = self.write(tenant).await?;
            let removed: i64 = sqlx::query_scalar("SELECT bound_injections($1)")
                .bind(i64::from(most))
                .fetch_one(&mut *write)
                .await?;
            write.commit().await?;
            Ok(removed.cast_unsigned())
        };
        self.ask("bound_injections", gone).await
    }

    async fn expire(&self, now: Timestamp) -> Result<u64> {
        let function = "SELECT expire_injections($1, $2)";
        self.expire_by("expire_injections", function, now).await
    }
}

/// Takes block and hash of every injection that names one of these turns of a space. The transaction has kept others from naming them since
/// [`tombstones::keep_others`].
pub async fn forget(connection: &mut PgConnection, scope: &Scope, turns: &[Uuid]) -> Outcome<()> {
    sqlx::query(
        "UPDATE injections SET block = NULL, block_hash = NULL, forgotten = true WHERE tenant = $1 AND NOT forgotten AND id IN (
             SELECT id FROM injection_turns WHERE tenant = $1 AND space = $2 AND turn = ANY ($3))",
    )
    .bind(scope.tenant.as_str())
    .bind(scope.space.as_str())
    .bind(turns)
    .execute(connection)
    .await?;
    Ok(())
}

/// The same of every injection that names the space; whether there was one.
pub async fn of_space(connection: &mut PgConnection, scope: &Scope) -> Outcome<bool> {
    let taken = sqlx::query(
        "UPDATE injections SET block = NULL, block_hash = NULL, forgotten = true WHERE tenant = $1 AND NOT forgotten AND id IN (
             SELECT id FROM injection_spaces WHERE tenant = $1 AND space = $2)",
    )
    .bind(scope.tenant.as_str())
    .bind(scope.space.as_str())
    .execute(connection)
    .await?;
    Ok(taken.rows_affected() > 0)
}

/// Adds an injection, in the transaction of its caller.
pub async fn append(
    connection: &mut PgConnection,
    tenant: &TenantId,
    injection: &Injection,
) -> Outcome<()> {
    let gone = tombstones::any(connection, tenant, &injection.turns).await?;
    let forgotten = injection.forgotten || gone;
    let hash = injection.block_hash.as_ref().filter(|_| !forgotten);
    let block = injection.block.as_ref().filter(|_| !forgotten);
    let inserted = sqlx::query(
        "INSERT INTO injections (tenant, id, at, caller, request_id, session, exchange, spaces, decision, block, block_hash, record,
             turns, expires_at, forgotten)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) ON CONFLICT (tenant, id) DO NOTHING",
    )
    .bind(tenant.as_str())
    .bind(from_injection_id(injection.id))
    .bind(injection.at.timestamp_micros())
    .bind(&injection.caller)
    .bind(&injection.request_id)
    .bind(injection.session.as_ref().map(SessionId::as_str))
    .bind(injection.exchange.as_ref().map(ExchangeName::as_str))
    .bind(to_json(&injection.spaces))
    .bind(&injection.decision)
    .bind(block.map(String::as_bytes))
    .bind(hash.map(<[u8; 32]>::as_slice))
    .bind(injection.record.as_bytes())
    .bind(to_json(&injection.turns))
    .bind(injection.expires_at.map(|at| at.timestamp_micros()))
    .bind(forgotten)
    .execute(&mut *connection)
    .await?;
    match inserted.rows_affected() {
        0 => Ok(()),
        _ => name_places(connection, tenant, injection).await,
    }
}

/// What it is found by.
async fn name_places(
    connection: &mut PgConnection,
    tenant: &TenantId,
    injection: &Injection,
) -> Outcome<()> {
    let all = injection.all_spaces().into_iter().map(SpaceId::as_str);
    sqlx::query("INSERT INTO injection_spaces (tenant, space, at, id) SELECT $1, space, $2, $3 FROM unnest($4::text[]) AS named(space)")
        .bind(tenant.as_str())
        .bind(injection.at.timestamp_micros())
        .bind(from_injection_id(injection.id))
        .bind(all.collect::<Vec<_>>())
        .execute(&mut *connection)
        .await?;
    let (spaces, turns) = from_pairs(&injection.turns);
    sqlx::query(
        "INSERT INTO injection_turns (tenant, space, turn, at, id)
         SELECT DISTINCT $1, named.space, named.turn, $2::bigint, $3::uuid FROM unnest($4::text[], $5::uuid[]) AS named(space, turn)",
    )
    .bind(tenant.as_str())
    .bind(injection.at.timestamp_micros())
    .bind(from_injection_id(injection.id))
    .bind(spaces)
    .bind(turns)
    .execute(connection)
    .await?;
    Ok(())
}

/// The turns of a row that has nothing else.
fn turns(row: &PgRow) -> Outcome<Vec<(SpaceId, TurnId)>> {
    Ok(json(row.try_get(0)?)?)
}

fn injection(row: &PgRow) -> Outcome<Injection> {
    let session: Option<&str> = row.try_get(4)?;
    let exchange: Option<&str> = row.try_get(5)?;
    let hash: Option<&[u8]> = row.try_get(9)?;
    Ok(Injection {
        id: to_injection_id(row.try_get(0)?),
        at: time(row.try_get(1)?)?,
        caller: row.try_get(2)?,
        request_id: row.try_get(3)?,
        session: session.map(|text| name(SessionId::new(text))).transpose()?,
        exchange: exchange
            .map(|text| name(ExchangeName::new(text)))
            .transpose()?,
        spaces: json::<Vec<SpaceId>>(row.try_get(6)?)?,
        decision: row.try_get(7)?,
        block: row
            .try_get::<Option<Vec<u8>>, _>(8)?
            .map(text)
            .transpose()?,
        block_hash: hash.map(to_block_hash).transpose()?,
        record: text(row.try_get(10)?)?,
        turns: json(row.try_get(11)?)?,
        expires_at: row.try_get::<Option<i64>, _>(12)?.map(time).transpose()?,
        forgotten: row.try_get(13)?,
    })
}

fn from_injection_id(id: InjectionId) -> Uuid {
    Uuid::from_bytes(*id.as_bytes())
}

fn to_injection_id(id: Uuid) -> InjectionId {
    InjectionId::from_bytes(id.into_bytes())
}
