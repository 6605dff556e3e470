//! The audit log.

use async_trait::async_trait;
use memfleet_columns::{
    audit_kind, bounds, from_token, name, optional_json, page, some_json, time, to_json, to_key_id,
    to_token,
};
use memfleet_domain::ids::{SpaceId, TenantId};
use memfleet_domain::time::Timestamp;
use memfleet_ports::audit::{AuditFilter, AuditLog, AuditRecord};
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::store::Result;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::failure::{Failure, Outcome};
use crate::store::SqliteStore;

#[async_trait]
impl AuditLog for SqliteStore {
    async fn append(&self, records: &[AuditRecord]) -> Result<()> {
        let mut write = self.write().await?;
        append(&mut write, records).await?;
        Ok(write.commit().await?)
    }

    async fn list(
        &self,
        tenant: &TenantId,
        filter: &AuditFilter,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<AuditRecord>> {
        let [at, id] = after.map_or(Ok([i64::MAX, i64::MAX]), from_token)?;
        let [start, end] = bounds(&filter.time);
        let kinds: Vec<_> = filter.kinds.iter().map(|kind| kind.name()).collect();
        let mut read = self.read().await?;
        let rows = sqlx::query(
            "SELECT tenant, at, kind, caller, request_id, space, key, turns, detail, id FROM audit
             WHERE tenant = ?1 AND (at, id) < (?2, ?3) AND at >= ?4 AND at < ?5
                 AND (?6 = '[]' OR kind IN (SELECT value FROM json_each(?6)))
             ORDER BY at DESC, id DESC LIMIT ?7",
        )
        .bind(tenant.as_str())
        .bind(at)
        .bind(id)
        .bind(start)
        .bind(end)
        .bind(to_json(&kinds))
        .bind(i64::from(limit) + 1)
        .fetch_all(&mut *read)
        .await
        .map_err(Failure::from)?;
        Ok(page(&rows, limit as usize, record, |row| {
            Ok::<_, Failure>(to_token([row.try_get(1)?, row.try_get(9)?]))
        })?)
    }

    async fn expire(&self, before: Timestamp) -> Result<u64> {
        let mut write = self.write().await?;
        let gone = sqlx::query("DELETE FROM audit WHERE at < ?")
            .bind(before.timestamp_micros())
            .execute(&mut *write)
            .await
            .map_err(Failure::from)?;
        write.commit().await?;
        Ok(gone.rows_affected())
    }
}

/// Adds records.
pub async fn append(connection: &mut SqliteConnection, records: &[AuditRecord]) -> Outcome<()> {
    for record in records {
        sqlx::query(
            "INSERT INTO audit (tenant, at, kind, caller, request_id, space, key, turns, detail)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(record.tenant.as_str())
        .bind(record.at.timestamp_micros())
        .bind(record.kind.name())
        .bind(&record.caller)
        .bind(&record.request_id)
        .bind(record.space.as_ref().map(SpaceId::as_str))
        .bind(record.key.as_ref().map(|key| key.as_bytes().as_slice()))
        .bind(some_json(&record.turns, record.turns.is_empty()))
        .bind(some_json(&record.detail, record.detail.is_empty()))
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

fn record(row: &SqliteRow) -> Outcome<AuditRecord> {
    let space: Option<&str> = row.try_get(5)?;
    Ok(AuditRecord {
        tenant: name(TenantId::new(row.try_get::<&str, _>(0)?))?,
        at: time(row.try_get(1)?)?,
        kind: audit_kind(row.try_get(2)?)?,
        caller: row.try_get(3)?,
        request_id: row.try_get(4)?,
        space: space.map(|text| name(SpaceId::new(text))).transpose()?,
        key: row
            .try_get::<Option<&[u8]>, _>(6)?
            .map(to_key_id)
            .transpose()?,
        turns: optional_json(row.try_get(7)?)?,
        detail: optional_json(row.try_get(8)?)?,
    })
}
