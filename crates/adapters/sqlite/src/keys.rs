//! API keys, found by the hash of their secret.

use async_trait::async_trait;
use memfleet_columns::{cut, from_key_token, grant, name, patterns, time, to_key_id, to_key_token};
use memfleet_domain::access::KeyHash;
use memfleet_domain::ids::{KeyId, TenantId};
use memfleet_domain::time::Timestamp;
use memfleet_ports::audit::AuditRecord;
use memfleet_ports::keys::{Key, KeyRing, Use};
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::store::Result;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::audit::append;
use crate::failure::{Failure, Outcome};
use crate::store::SqliteStore;

/// The columns that [`key`] reads.
macro_rules! select_keys {
    () => {
        "SELECT tenant, id, label, rights, spaces, operator, calls_per_minute, created_at, expires_at, last_used_at, revoked_at,
             replaced_by FROM keys"
    };
}

#[async_trait]
impl KeyRing for SqliteStore {
    async fn add(&self, key: &Key, hash: &KeyHash, records: &[AuditRecord]) -> Result<bool> {
        let mut write = self.write().await?;
        let added = insert(&mut write, key, hash).await?;
        if added {
            append(&mut write, records).await?;
        }
        write.commit().await?;
        Ok(added)
    }

    async fn find(&self, hash: &KeyHash) -> Result<Option<Key>> {
        let mut read = self.look_up().await?;
        let row = sqlx::query(concat!(select_keys!(), " WHERE hash = ?"))
            .bind(hash.as_bytes().as_slice())
            .fetch_optional(&mut *read)
            .await
            .map_err(Failure::from)?;
        Ok(row.as_ref().map(key).transpose()?)
    }

    async fn has_any(&self) -> Result<bool> {
        let mut read = self.look_up().await?;
        let any = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM keys)");
        Ok(any.fetch_one(&mut *read).await.map_err(Failure::from)?)
    }

    async fn get(&self, tenant: &TenantId, id: KeyId) -> Result<Option<Key>> {
        Ok(find(&mut *self.look_up().await?, tenant, id).await?)
    }

    async fn list(
        &self,
        tenant: &TenantId,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Key>> {
        let (created_at, id) = from_key_token(after)?;
        let mut read = self.read().await?;
        let rows = sqlx::query(concat!(
            select_keys!(),
            " WHERE tenant = ? AND (created_at, id) > (?, ?) ORDER BY created_at, id LIMIT ?"
        ))
        .bind(tenant.as_str())
        .bind(created_at)
        .bind(id.as_bytes().as_slice())
        .bind(i64::from(limit) + 1)
        .fetch_all(&mut *read)
        .await
        .map_err(Failure::from)?;
        let keys = rows.iter().map(key).collect::<Outcome<Vec<_>>>()?;
        Ok(cut(keys, limit, |key| to_key_token(key.created_at, key.id)))
    }

    async fn revoke(
        &self,
        tenant: &TenantId,
        id: KeyId,
        now: Timestamp,
        records: &[AuditRecord],
    ) -> Result<Option<Key>> {
        let mut write = self.write().await?;
        let changed = sqlx::query(
            "UPDATE keys SET revoked_at = ? WHERE tenant = ? AND id = ? AND revoked_at IS NULL",
        )
        .bind(now.timestamp_micros())
        .bind(tenant.as_str())
        .bind(id.as_bytes().as_slice())
        .execute(&mut *write)
        .await
        .map_err(Failure::from)?;
        if changed.rows_affected() > 0 {
            append(&mut write, records).await?;
        }
        let key = find(&mut write, tenant, id).await?;
        write.commit().await?;
        Ok(key)
    }

    async fn rotate(
        &self,
        id: KeyId,
        until: Timestamp,
        next: &Key,
        hash: &KeyHash,
        records: &[AuditRecord],
    ) -> Result<bool> {
        let mut write = self.write().await?;
        let changed = sqlx::query(
            "UPDATE keys SET replaced_by = ?1, expires_at = min(coalesce(expires_at, ?2), ?2)
             WHERE tenant = ?3 AND id = ?4 AND revoked_at IS NULL AND replaced_by IS NULL",
        )
        .bind(next.id.as_bytes().as_slice())
        .bind(until.timestamp_micros())
        .bind(next.tenant.as_str())
        .bind(id.as_bytes().as_slice())
        .execute(&mut *write)
        .await
        .map_err(Failure::from)?;
        if changed.rows_affected() == 0 || !insert(&mut write, next, hash).await? {
            return Ok(false);
        }
        append(&mut write, records).await?;
        write.commit().await?;
        Ok(true)
    }

    async fn used(&self, uses: &[Use]) -> Result<()> {
        let mut write = self.write().await?;
        for (tenant, id, at) in uses {
            sqlx::query(
                "UPDATE keys SET last_used_at = ?1
                 WHERE tenant = ?2 AND id = ?3 AND coalesce(last_used_at, 0) < ?1",
            )
            .bind(at.timestamp_micros())
            .bind(tenant.as_str())
            .bind(id.as_bytes().as_slice())
            .execute(&mut *write)
            .await
            .map_err(Failure::from)?;
        }
        Ok(write.commit().await?)
    }
}

async fn find(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    id: KeyId,
) -> Outcome<Option<Key>> {
    let row = sqlx::query(concat!(select_keys!(), " WHERE tenant = ? AND id = ?"))
        .bind(tenant.as_str())
        .bind(id.as_bytes().as_slice())
        .fetch_optional(connection)
        .await?;
    row.as_ref().map(key).transpose()
}

async fn insert(connection: &mut SqliteConnection, key: &Key, hash: &KeyHash) -> Outcome<bool> {
    let inserted = sqlx::query(
        "INSERT INTO keys (tenant, id, hash, label, rights, spaces, operator, calls_per_minute, created_at, expires_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
    )
    .bind(key.tenant.as_str())
    .bind(key.id.as_bytes().as_slice())
    .bind(hash.as_bytes().as_slice())
    .bind(&key.label)
    .bind(i64::from(key.grant.rights.bits()))
    .bind(patterns(&key.grant))
    .bind(key.is_operator)
    .bind(key.calls_per_minute)
    .bind(key.created_at.timestamp_micros())
    .bind(key.expires_at.map(|at| at.timestamp_micros()))
    .execute(connection)
    .await?;
    Ok(inserted.rows_affected() > 0)
}

fn key(row: &SqliteRow) -> Outcome<Key> {
    let instant = |index| -> Outcome<Option<Timestamp>> {
        Ok(row
            .try_get::<Option<i64>, _>(index)?
            .map(time)
            .transpose()?)
    };
    Ok(Key {
        tenant: name(TenantId::new(row.try_get::<&str, _>(0)?))?,
        id: to_key_id(row.try_get(1)?)?,
        label: row.try_get(2)?,
        grant: grant(row.try_get(3)?, row.try_get(4)?)?,
        is_operator: row.try_get(5)?,
        calls_per_minute: row.try_get(6)?,
        created_at: time(row.try_get(7)?)?,
        expires_at: instant(8)?,
        last_used_at: instant(9)?,
        revoked_at: instant(10)?,
        replaced_by: row
            .try_get::<Option<&[u8]>, _>(11)?
            .map(to_key_id)
            .transpose()?,
    })
}
