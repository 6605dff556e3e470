//! Settings of tenants. One writer at a time makes versions follow each other.

use async_trait::async_trait;
use memfleet_columns::{from_token, page, setting_key, setting_space, time, to_token};
use memfleet_domain::Scope;
use memfleet_domain::ids::TenantId;
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::settings::{Put, Revised, Setting, SettingKey, Settings};
use memfleet_ports::store::Result;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::failure::{Failure, Outcome};
use crate::store::SqliteStore;

/// What [`setting`] reads.
macro_rules! select_settings {
    () => {
        "SELECT kind, space, name, version, body, author, at FROM settings "
    };
}

#[async_trait]
impl Settings for SqliteStore {
    async fn put(&self, tenant: &TenantId, key: &SettingKey, revised: &Revised) -> Result<Put> {
        let mut write = self.write().await?;
        let latest = latest(&mut write, tenant, key).await?;
        let version = latest.as_ref().map_or(0, |latest| latest.version);
        let changed = revised.changes(latest.as_ref())?;
        if !changed {
            return Ok(Put { version, changed });
        }
        let version = version + 1;
        insert(&mut write, tenant, key, version, revised).await?;
        count(&mut write, tenant).await?;
        write.commit().await?;
        Ok(Put { version, changed })
    }

    async fn current(&self, tenant: &TenantId) -> Result<Vec<Setting>> {
        let rows = sqlx::query(concat!(
            select_settings!(),
            "WHERE tenant = ? AND body IS NOT NULL AND version = (
                 SELECT max(version) FROM settings o WHERE o.tenant = settings.tenant AND o.kind = settings.kind
                     AND o.space = settings.space AND o.name = settings.name)
             ORDER BY kind, space, name"
        ))
        .bind(tenant.as_str())
        .fetch_all(&mut *self.read_once().await?)
        .await
        .map_err(Failure::from)?;
        Ok(rows.iter().map(setting).collect::<Outcome<_>>()?)
    }

    async fn get(
        &self,
        tenant: &TenantId,
        key: &SettingKey,
        version: u32,
    ) -> Result<Option<Setting>> {
        let row = sqlx::query(concat!(
            select_settings!(),
            "WHERE tenant = ? AND kind = ? AND space = ? AND name = ? AND version = ?"
        ))
        .bind(tenant.as_str())
        .bind(key.kind.name())
        .bind(setting_space(key))
        .bind(key.name.as_str())
        .bind(version)
        .fetch_optional(&mut *self.look_up().await?)
        .await
        .map_err(Failure::from)?;
        Ok(row.as_ref().map(setting).transpose()?)
    }

    async fn history(
        &self,
        tenant: &TenantId,
        key: &SettingKey,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Setting>> {
        let [before] = after.map_or(Ok([i64::MAX]), from_token)?;
        let rows = sqlx::query(concat!(
            select_settings!(),
            "WHERE tenant = ? AND kind = ? AND space = ? AND name = ? AND version < ? ORDER BY version DESC LIMIT ?"
        ))
        .bind(tenant.as_str())
        .bind(key.kind.name())
        .bind(setting_space(key))
        .bind(key.name.as_str())
        .bind(before)
        .bind(i64::from(limit) + 1)
        .fetch_all(&mut *self.read_once().await?)
        .await
        .map_err(Failure::from)?;
        Ok(page(&rows, limit as usize, setting, |row| {
            Ok::<_, Failure>(to_token([row.try_get(3)?]))
        })?)
    }

    async fn revision(&self, tenant: &TenantId) -> Result<u64> {
        let revision: Option<i64> =
            sqlx::query_scalar("SELECT revision FROM setting_revisions WHERE tenant = ?")
                .bind(tenant.as_str())
                .fetch_optional(&mut *self.look_up().await?)
                .await
                .map_err(Failure::from)?;
        Ok(revision.unwrap_or(0).cast_unsigned())
    }
}

/// Removes the settings of a space with their history; whether there were any.
pub async fn of_space(connection: &mut SqliteConnection, scope: &Scope) -> Outcome<bool> {
    let gone = sqlx::query("DELETE FROM settings WHERE tenant = ? AND space = ?")
        .bind(scope.tenant.as_str())
        .bind(scope.space.as_str())
        .execute(&mut *connection)
        .await?;
    let is_some = gone.rows_affected() > 0;
    if is_some {
        count(connection, &scope.tenant).await?;
    }
    Ok(is_some)
}

async fn latest(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    key: &SettingKey,
) -> Outcome<Option<Setting>> {
    let row = sqlx::query(concat!(
        select_settings!(),
        "WHERE tenant = ? AND kind = ? AND space = ? AND name = ? ORDER BY version DESC LIMIT 1"
    ))
    .bind(tenant.as_str())
    .bind(key.kind.name())
    .bind(setting_space(key))
    .bind(key.name.as_str())
    .fetch_optional(connection)
    .await?;
    row.as_ref().map(setting).transpose()
}

async fn insert(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    key: &SettingKey,
    version: u32,
    revised: &Revised,
) -> Outcome<()> {
    sqlx::query(
        "INSERT INTO settings (tenant, kind, space, name, version, body, author, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(tenant.as_str())
    .bind(key.kind.name())
    .bind(setting_space(key))
    .bind(key.name.as_str())
    .bind(version)
    .bind(&revised.body)
    .bind(&revised.by)
    .bind(revised.at.timestamp_micros())
    .execute(connection)
    .await?;
    Ok(())
}

/// One more change.
async fn count(connection: &mut SqliteConnection, tenant: &TenantId) -> Outcome<()> {
    sqlx::query(
        "INSERT INTO setting_revisions (tenant, revision) VALUES (?, 1)
         ON CONFLICT (tenant) DO UPDATE SET revision = revision + 1",
    )
    .bind(tenant.as_str())
    .execute(connection)
    .await?;
    Ok(())
}

fn setting(row: &SqliteRow) -> Outcome<Setting> {
    Ok(Setting {
        key: setting_key(row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)?,
        version: row.try_get(3)?,
        body: row.try_get(4)?,
        by: row.try_get(5)?,
        at: time(row.try_get(6)?)?,
    })
}
