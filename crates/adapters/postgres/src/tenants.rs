//! Tenants: what they may use and what they use.

use async_trait::async_trait;
use memfleet_columns::tenants;
use memfleet_domain::access::{Quota, Usage};
use memfleet_domain::ids::TenantId;
use memfleet_ports::audit::AuditRecord;
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::store::{Result, StoreError};
use memfleet_ports::tenants::TenantCatalog;
use sqlx::Row;

use crate::audit::append;
use crate::store::PostgresStore;

#[async_trait]
impl TenantCatalog for PostgresStore {
    async fn quota(&self, tenant: &TenantId) -> Result<Quota> {
        let quota = async {
            let mut read = self.read(tenant).await?;
            let row =
                sqlx::query("SELECT calls_per_minute, turns, spaces FROM quotas WHERE tenant = $1")
                    .bind(tenant.as_str())
                    .fetch_optional(&mut *read)
                    .await?;
            let Some(row) = row else {
                return Ok(Quota::default());
            };
            let calls: Option<i64> = row.try_get(0)?;
            let turns: Option<i64> = row.try_get(1)?;
            let spaces: Option<i64> = row.try_get(2)?;
            Ok(Quota {
                calls_per_minute: calls.map(|calls| calls as u32),
                turns: turns.map(|turns| turns as u64),
                spaces: spaces.map(|spaces| spaces as u64),
            })
        };
        self.ask("quota", quota).await
    }

    async fn put_quota(
        &self,
        tenant: &TenantId,
        quota: &Quota,
        records: &[AuditRecord],
    ) -> Result<()> {
        let put = async {
            let mut write = self.write(tenant).await?;
            sqlx::query(
                "INSERT INTO quotas (tenant, calls_per_minute, turns, spaces) VALUES ($1, $2, $3, $4)
                 ON CONFLICT (tenant) DO UPDATE SET calls_per_minute = excluded.calls_per_minute, turns = excluded.turns,
                     spaces = excluded.spaces",
            )
            .bind(tenant.as_str())
            .bind(quota.calls_per_minute.map(i64::from))
            .bind(quota.turns.map(u64::cast_signed))
            .bind(quota.spaces.map(u64::cast_signed))
            .execute(&mut *write)
            .await?;
            append(&mut write, records).await?;
            write.commit().await
        };
        self.ask("put_quota", put).await
    }

    async fn stored_turns(&self, tenant: &TenantId) -> Result<u64> {
        let sum = async {
            let mut read = self.read(tenant).await?;
            let sum: i64 = sqlx::query_scalar(
                "SELECT coalesce(sum(turns), 0)::bigint FROM sessions WHERE tenant = $1",
            )
            .bind(tenant.as_str())
            .fetch_one(&mut *read)
            .await?;
            Ok(sum as u64)
        };
        self.ask("stored_turns", sum).await
    }

    async fn spaces(&self, tenant: &TenantId) -> Result<u64> {
        let count = async {
            let mut read = self.read(tenant).await?;
            let spaces: i64 = sqlx::query_scalar(
                "SELECT count(*) FROM spaces WHERE tenant = $1 AND name IS NOT NULL",
            )
            .bind(tenant.as_str())
            .fetch_one(&mut *read)
            .await?;
            Ok(spaces.cast_unsigned())
        };
        self.ask("stored_spaces", count).await
    }

    async fn usage(&self, tenant: &TenantId) -> Result<Usage> {
        let usage = async {
            let mut read = self.read(tenant).await?;
            let row = sqlx::query(
                "SELECT (SELECT count(*) FROM spaces WHERE tenant = $1 AND name IS NOT NULL), count(*),
                     coalesce(sum(octet_length(text)), 0)::bigint, (SELECT count(*) FROM exchanges WHERE tenant = $1),
                     (SELECT count(*) FROM injections WHERE tenant = $1) FROM turns WHERE tenant = $1",
            )
            .bind(tenant.as_str())
            .fetch_one(&mut *read)
            .await?;
            Ok(Usage {
                spaces: row.try_get::<i64, _>(0)? as u64,
                turns: row.try_get::<i64, _>(1)? as u64,
                bytes: row.try_get::<i64, _>(2)? as u64,
                exchanges: row.try_get::<i64, _>(3)? as u64,
                injections: row.try_get::<i64, _>(4)? as u64,
            })
        };
        self.ask("usage", usage).await
    }

    async fn tenants(&self, limit: u32, after: Option<&PageToken>) -> Result<Page<TenantId>> {
        // A token is the name of a tenant, and what is none was not given out.
        let after = after.map(|token| TenantId::new(token.0.as_str()));
        let after = after.transpose().map_err(|_| StoreError::PageToken)?;
        let page = async {
            let mut read = self.sweep().await?;
            let names: Vec<String> = sqlx::query_scalar("SELECT tenant FROM tenants_after($1, $2)")
                .bind(after.as_ref().map_or("", TenantId::as_str))
                .bind(i64::from(limit) + 1)
                .fetch_all(&mut *read)
                .await?;
            Ok(tenants(names, limit)?)
        };
        self.ask("tenants", page).await
    }
}
