//! Tenants: what they may use and what they use.

use async_trait::async_trait;
use memfleet_columns::tenants;
use memfleet_domain::access::{Quota, Usage};
use memfleet_domain::ids::TenantId;
use memfleet_ports::audit::AuditRecord;
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::store::Result;
use memfleet_ports::tenants::TenantCatalog;
use sqlx::Row;

use crate::audit::append;
use crate::failure::{Failure, Outcome};
use crate::store::SqliteStore;

#[async_trait]
impl TenantCatalog for SqliteStore {
    async fn quota(&self, tenant: &TenantId) -> Result<Quota> {
        let mut read = self.look_up().await?;
        let row =
            sqlx::query("SELECT calls_per_minute, turns, spaces FROM quotas WHERE tenant = ?")
                .bind(tenant.as_str())
                .fetch_optional(&mut *read)
                .await
                .map_err(Failure::from)?;
        let Some(row) = row else {
            return Ok(Quota::default());
        };
        let turns: Option<i64> = row.try_get(1).map_err(Failure::from)?;
        let spaces: Option<i64> = row.try_get(2).map_err(Failure::from)?;
        Ok(Quota {
            calls_per_minute: row.try_get(0).map_err(Failure::from)?,
            turns: turns.map(|turns| turns as u64),
            spaces: spaces.map(|spaces| spaces as u64),
        })
    }

    async fn put_quota(
        &self,
        tenant: &TenantId,
        quota: &Quota,
        records: &[AuditRecord],
    ) -> Result<()> {
        let mut write = self.write().await?;
        sqlx::query(
            "INSERT OR REPLACE INTO quotas (tenant, calls_per_minute, turns, spaces) VALUES (?, ?, ?, ?)",
        )
        .bind(tenant.as_str())
        .bind(quota.calls_per_minute)
        .bind(quota.turns.map(u64::cast_signed))
        .bind(quota.spaces.map(u64::cast_signed))
        .execute(&mut *write)
        .await
        .map_err(Failure::from)?;
        append(&mut write, records).await?;
        Ok(write.commit().await?)
    }

    async fn stored_turns(&self, tenant: &TenantId) -> Result<u64> {
        let mut read = self.read_once().await?;
        let sum: i64 = sqlx::query_scalar(
            "SELECT coalesce(sum(s.turns), 0) FROM spaces p JOIN sessions s ON s.space = p.id WHERE p.tenant = ?",
        )
        .bind(tenant.as_str())
        .fetch_one(&mut *read)
        .await
        .map_err(Failure::from)?;
        Ok(sum as u64)
    }

    async fn spaces(&self, tenant: &TenantId) -> Result<u64> {
        let mut read = self.read_once().await?;
        let spaces: i64 =
            sqlx::query_scalar("SELECT count(*) FROM spaces WHERE tenant = ? AND name IS NOT NULL")
                .bind(tenant.as_str())
                .fetch_one(&mut *read)
                .await
                .map_err(Failure::from)?;
        Ok(spaces.cast_unsigned())
    }

    async fn usage(&self, tenant: &TenantId) -> Result<Usage> {
        let mut read = self.read().await?;
        let row = sqlx::query(
            "SELECT (SELECT count(*) FROM spaces WHERE tenant = ?1 AND name IS NOT NULL), count(*),
                 coalesce(sum(length(CAST(t.text AS BLOB))), 0),
                 (SELECT count(*) FROM exchanges WHERE tenant = ?1), (SELECT count(*) FROM injections WHERE tenant = ?1)
             FROM spaces p JOIN turns t ON t.space = p.id WHERE p.tenant = ?1",
        )
        .bind(tenant.as_str())
        .fetch_one(&mut *read)
        .await
        .map_err(Failure::from)?;
        let number = |index: usize| -> Outcome<u64> { Ok(row.try_get::<i64, _>(index)? as u64) };
        Ok(Usage {
            spaces: number(0)?,
            turns: number(1)?,
            bytes: number(2)?,
            exchanges: number(3)?,
            injections: number(4)?,
        })
    }

    async fn tenants(&self, limit: u32, after: Option<&PageToken>) -> Result<Page<TenantId>> {
        let mut read = self.read().await?;
        let names: Vec<String> = sqlx::query_scalar(
            "SELECT tenant FROM (SELECT tenant FROM keys UNION SELECT tenant FROM quotas
                 UNION SELECT tenant FROM spaces WHERE name IS NOT NULL)
             WHERE tenant > ? ORDER BY tenant LIMIT ?",
        )
        .bind(after.map_or("", |token| token.0.as_str()))
        .bind(i64::from(limit) + 1)
        .fetch_all(&mut *read)
        .await
        .map_err(Failure::from)?;
        Ok(tenants(names, limit)?)
    }
}
