//! The audit log.

use async_trait::async_trait;
use memfleet_columns::{
    audit_kind, bounds, from_token, name, optional_json, page, some_json, time, to_token,
};
use memfleet_domain::ids::{SpaceId, TenantId};
use memfleet_domain::time::Timestamp;
use memfleet_ports::audit::{AuditFilter, AuditLog, AuditRecord};
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::store::Result;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use crate::failure::Outcome;
use crate::keys::{from_key_id, to_key_id};
use crate::store::PostgresStore;
use crate::transaction::switch;

#[async_trait]
impl AuditLog for PostgresStore {
    async fn append(&self, records: &[AuditRecord]) -> Result<()> {
        let Some(first) = records.first() else {
            return Ok(());
        };
        let appended = async {
            let mut write = self.write(&first.tenant).await?;
            append(&mut write, records).await?;
            write.commit().await
        };
        self.ask("append_audit", appended).await
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
        let page = async {
            let mut read = self.read(tenant).await?;
            let rows = sqlx::query(
                "SELECT tenant, at, kind, caller, request_id, space, key, turns, detail, id FROM audit
                 WHERE tenant = $1 AND (at, id) < ($2, $3) AND at >= $4 AND at < $5 AND (cardinality($6) = 0 OR kind = ANY ($6))
                 ORDER BY at DESC, id DESC LIMIT $7",
            )
            .bind(tenant.as_str())
            .bind(at)
            .bind(id)
            .bind(start)
            .bind(end)
            .bind(kinds)
            .bind(i64::from(limit) + 1)
            .fetch_all(&mut *read)
            .await?;
            page(&rows, limit as usize, record, |row| {
                Ok(to_token([row.try_get(1)?, row.try_get(9)?]))
            })
        };
        self.ask("audit", page).await
    }

    async fn expire(&self, before: Timestamp) -> Result<u64> {
        let function = "SELECT expire_audit($1, $2)";
        self.expire_by("expire_audit", function, before).await
    }
}

/// Adds records of any tenants; the transaction acts for that of the last one afterwards.
pub async fn append(connection: &mut PgConnection, records: &[AuditRecord]) -> Outcome<()> {
    let mut tenant = None;
    for record in records {
        if tenant != Some(&record.tenant) {
            switch(connection, &record.tenant).await?;
            tenant = Some(&record.tenant);
        }
        sqlx::query(
            "INSERT INTO audit (tenant, at, kind, caller, request_id, space, key, turns, detail)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        )
        .bind(record.tenant.as_str())
        .bind(record.at.timestamp_micros())
        .bind(record.kind.name())
        .bind(&record.caller)
        .bind(&record.request_id)
        .bind(record.space.as_ref().map(SpaceId::as_str))
        .bind(record.key.map(from_key_id))
        .bind(some_json(&record.turns, record.turns.is_empty()))
        .bind(some_json(&record.detail, record.detail.is_empty()))
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

fn record(row: &PgRow) -> Outcome<AuditRecord> {
    let space: Option<&str> = row.try_get(5)?;
    Ok(AuditRecord {
        tenant: name(TenantId::new(row.try_get::<&str, _>(0)?))?,
        at: time(row.try_get(1)?)?,
        kind: audit_kind(row.try_get(2)?)?,
        caller: row.try_get(3)?,
        request_id: row.try_get(4)?,
        space: space.map(|text| name(SpaceId::new(text))).transpose()?,
        key: row.try_get::<Option<Uuid>, _>(6)?.map(to_key_id),
        turns: optional_json(row.try_get(7)?)?,
        detail: optional_json(row.try_get(8)?)?,
    })
}
