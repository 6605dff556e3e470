//! API keys. A key is found by the hash of its secret through a function that looks across tenants; all else is its tenant's.

use async_trait::async_trait;
use memfleet_columns::{cut, from_key_token, grant, name, patterns, time, to_key_token};
use memfleet_domain::access::KeyHash;
use memfleet_domain::ids::{KeyId, TenantId};
use memfleet_domain::time::Timestamp;
use memfleet_ports::audit::AuditRecord;
use memfleet_ports::keys::{Key, KeyRing, Use};
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::store::Result;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use crate::audit::append;
use crate::failure::Outcome;
use crate::store::PostgresStore;

/// The columns that [`key`] reads.
macro_rules! key_columns {
    () => {
        "tenant, id, label, rights, spaces, operator, calls_per_minute, created_at, expires_at, last_used_at, revoked_at, replaced_by"
    };
}

#[async_trait]
impl KeyRing for PostgresStore {
    async fn add(&self, key: &Key, hash: &KeyHash, records: &[AuditRecord]) -> Result<bool> {
        let added = async {
            let mut write = self.write(&key.tenant).await?;
            let added = insert(&mut write, key, hash).await?;
            if added {
                append(&mut write, records).await?;
            }
            write.commit().await?;
            Ok(added)
        };
        self.ask("add_key", added).await
    }

    async fn find(&self, hash: &KeyHash) -> Result<Option<Key>> {
        let found = async {
            let mut read = self.sweep().await?;
            let row = sqlx::query(concat!("SELECT ", key_columns!(), " FROM find_key($1)"))
                .bind(hash.as_bytes().as_slice())
                .fetch_optional(&mut *read)
                .await?;
            row.as_ref().map(key).transpose()
        };
        self.ask("find_key", found).await
    }

    async fn has_any(&self) -> Result<bool> {
        let found = async {
            let mut read = self.sweep().await?;
            let any = sqlx::query_scalar("SELECT has_keys()");
            Ok(any.fetch_one(&mut *read).await?)
        };
        self.ask("has_keys", found).await
    }

    async fn get(&self, tenant: &TenantId, id: KeyId) -> Result<Option<Key>> {
        let found = async {
            let mut read = self.read(tenant).await?;
            find(&mut read, tenant, id).await
        };
        self.ask("key", found).await
    }

    async fn list(
        &self,
        tenant: &TenantId,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Key>> {
        let (created_at, id) = from_key_token(after)?;
        let page = async {
            let mut read = self.read(tenant).await?;
            let rows = sqlx::query(concat!(
                "SELECT ",
                key_columns!(),
                " FROM keys WHERE tenant = $1 AND (created_at, id) > ($2, $3) ORDER BY created_at, id LIMIT $4"
            ))
            .bind(tenant.as_str())
            .bind(created_at)
            .bind(from_key_id(id))
            .bind(i64::from(limit) + 1)
            .fetch_all(&mut *read)
            .await?;
            let keys = rows.iter().map(key).collect::<Outcome<Vec<_>>>()?;
            Ok(cut(keys, limit, |key| to_key_token(key.created_at, key.id)))
        };
        self.ask("keys", page).await
    }

    async fn revoke(
        &self,
        tenant: &TenantId,
        id: KeyId,
        now: Timestamp,
        records: &[AuditRecord],
    ) -> Result<Option<Key>> {
        let revoked = async {
            let mut write = self.write(tenant).await?;
            let changed = sqlx::query(
                "UPDATE keys SET revoked_at = $3 WHERE tenant = $1 AND id = $2 AND revoked_at IS NULL",
            )
            .bind(tenant.as_str())
            .bind(from_key_id(id))
            .bind(now.timestamp_micros())
            .execute(&mut *write)
            .await?;
            if changed.rows_affected() > 0 {
                append(&mut write, records).await?;
            }
            let key = find(&mut write, tenant, id).await?;
            write.commit().await?;
            Ok(key)
        };
        self.ask("revoke_key", revoked).await
    }

    async fn rotate(
        &self,
        id: KeyId,
        until: Timestamp,
        next: &Key,
        hash: &KeyHash,
        records: &[AuditRecord],
    ) -> Result<bool> {
        let rotated = async {
            let mut write = self.write(&next.tenant).await?;
            let changed = sqlx::query(
                "UPDATE keys SET replaced_by = $3, expires_at = least(expires_at, $4)
                 WHERE tenant = $1 AND id = $2 AND revoked_at IS NULL AND replaced_by IS NULL",
            )
            .bind(next.tenant.as_str())
            .bind(from_key_id(id))
            .bind(from_key_id(next.id))
            .bind(until.timestamp_micros())
            .execute(&mut *write)
            .await?;
            if changed.rows_affected() == 0 || !insert(&mut write, next, hash).await? {
                return Ok(false);
            }
            append(&mut write, records).await?;
            write.commit().await?;
            Ok(true)
        };
        self.ask("rotate_key", rotated).await
    }

    async fn used(&self, uses: &[Use]) -> Result<()> {
        for (tenant, id, at) in uses {
            let noted = async {
                let mut write = self.write(tenant).await?;
                sqlx::query(
                    "UPDATE keys SET last_used_at = $3
                     WHERE tenant = $1 AND id = $2 AND coalesce(last_used_at, 0) < $3",
                )
                .bind(tenant.as_str())
                .bind(from_key_id(*id))
                .bind(at.timestamp_micros())
                .execute(&mut *write)
                .await?;
                write.commit().await
            };
            self.ask("note_key_uses", noted).await?;
        }
        Ok(())
    }
}

async fn find(connection: &mut PgConnection, tenant: &TenantId, id: KeyId) -> Outcome<Option<Key>> {
    let row = sqlx::query(concat!(
        "SELECT ",
        key_columns!(),
        " FROM keys WHERE tenant = $1 AND id = $2"
    ))
    .bind(tenant.as_str())
    .bind(from_key_id(id))
    .fetch_optional(connection)
    .await?;
    row.as_ref().map(key).transpose()
}

async fn insert(connection: &mut PgConnection, key: &Key, hash: &KeyHash) -> Outcome<bool> {
    let inserted = sqlx::query(
        "INSERT INTO keys (tenant, id, hash, label, rights, spaces, operator, calls_per_minute, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING",
    )
    .bind(key.tenant.as_str())
    .bind(from_key_id(key.id))
    .bind(hash.as_bytes().as_slice())
    .bind(&key.label)
    .bind(i16::from(key.grant.rights.bits()))
    .bind(patterns(&key.grant))
    .bind(key.is_operator)
    .bind(key.calls_per_minute.map(i64::from))
    .bind(key.created_at.timestamp_micros())
    .bind(key.expires_at.map(|at| at.timestamp_micros()))
    .execute(connection)
    .await?;
    Ok(inserted.rows_affected() > 0)
}

fn key(row: &PgRow) -> Outcome<Key> {
    let instant = |index| -> Outcome<Option<Timestamp>> {
        Ok(row
            .try_get::<Option<i64>, _>(index)?
            .map(time)
            .transpose()?)
    };
    Ok(Key {
        tenant: name(TenantId::new(row.try_get::<&str, _>(0)?))?,
        id: to_key_id(row.try_get(1)?),
        label: row.try_get(2)?,
        grant: grant(row.try_get::<i16, _>(3)?.into(), row.try_get(4)?)?,
        is_operator: row.try_get(5)?,
        calls_per_minute: row.try_get::<Option<i64>, _>(6)?.map(|calls| calls as u32),
        created_at: time(row.try_get(7)?)?,
        expires_at: instant(8)?,
        last_used_at: instant(9)?,
        revoked_at: instant(10)?,
        replaced_by: row.try_get::<Option<Uuid>, _>(11)?.map(to_key_id),
    })
}

pub fn from_key_id(id: KeyId) -> Uuid {
    Uuid::from_bytes(*id.as_bytes())
}

pub fn to_key_id(id: Uuid) -> KeyId {
    KeyId::from_bytes(id.into_bytes())
}
