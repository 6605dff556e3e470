//! Settings of tenants.

use async_trait::async_trait;
use memfleet_columns::{from_token, page, setting_key, setting_space, time, to_token};
use memfleet_domain::Scope;
use memfleet_domain::ids::TenantId;
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::settings::{Put, Revised, Setting, SettingKey, Settings};
use memfleet_ports::store::Result;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use crate::failure::Outcome;
use crate::rows::text;
use crate::store::PostgresStore;

/// What [`setting`] reads.
macro_rules! select_settings {
    () => {
        "SELECT kind, space, name, version, body, author, at FROM settings "
    };
}

#[async_trait]
impl Settings for PostgresStore {
    async fn put(&self, tenant: &TenantId, key: &SettingKey, revised: &Revised) -> Result<Put> {
        let put = async {
            let mut write = self.write(tenant).await?;
            count(&mut write, tenant).await?;
            let latest = latest(&mut write, tenant, key).await?;
            let version = latest.as_ref().map_or(0, |latest| latest.version);
            let changed = revised.changes(latest.as_ref())?;
            if !changed {
                return Ok(Put { version, changed });
            }
            let version = version + 1;
            insert(&mut write, tenant, key, version, revised).await?;
            write.commit().await?;
            Ok(Put { version, changed })
        };
        self.ask("put_setting", put).await
    }

    async fn current(&self, tenant: &TenantId) -> Result<Vec<Setting>> {
        let current = async {
            let mut read = self.read(tenant).await?;
            let rows = sqlx::query(
                "SELECT kind, space, name, version, body, author, at FROM (
                     SELECT DISTINCT ON (kind, space, name) * FROM settings WHERE tenant = $1
                     ORDER BY kind, space, name, version DESC) latest
                 WHERE body IS NOT NULL ORDER BY kind, space, name",
            )
            .bind(tenant.as_str())
            .fetch_all(&mut *read)
            .await?;
            rows.iter().map(setting).collect()
        };
        self.ask("settings", current).await
    }

    async fn get(
        &self,
        tenant: &TenantId,
        key: &SettingKey,
        version: u32,
    ) -> Result<Option<Setting>> {
        let found = async {
            let mut read = self.read(tenant).await?;
            let row = sqlx::query(concat!(
                select_settings!(),
                "WHERE tenant = $1 AND kind = $2 AND space = $3 AND name = $4 AND version = $5"
            ))
            .bind(tenant.as_str())
            .bind(key.kind.name())
            .bind(setting_space(key))
            .bind(key.name.as_str())
            .bind(i64::from(version))
            .fetch_optional(&mut *read)
            .await?;
            row.as_ref().map(setting).transpose()
        };
        self.ask("setting", found).await
    }

    async fn history(
        &self,
        tenant: &TenantId,
        key: &SettingKey,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Setting>> {
        let [before] = after.map_or(Ok([i64::MAX]), from_token)?;
        let history = async {
            let mut read = self.read(tenant).await?;
            let rows = sqlx::query(concat!(
                select_settings!(),
                "WHERE tenant = $1 AND kind = $2 AND space = $3 AND name = $4 AND version < $5
                 ORDER BY version DESC LIMIT $6"
            ))
            .bind(tenant.as_str())
            .bind(key.kind.name())
            .bind(setting_space(key))
            .bind(key.name.as_str())
            .bind(before)
            .bind(i64::from(limit) + 1)
            .fetch_all(&mut *read)
            .await?;
            page(&rows, limit as usize, setting, |row| {
                Ok(to_token([row.try_get(3)?]))
            })
        };
        self.ask("setting_history", history).await
    }

    async fn revision(&self, tenant: &TenantId) -> Result<u64> {
        let revision = async {
            let mut read = self.read(tenant).await?;
            let revision: Option<i64> =
                sqlx::query_scalar("SELECT revision FROM setting_revisions WHERE tenant = $1")
                    .bind(tenant.as_str())
                    .fetch_optional(&mut *read)
                    .await?;
            Ok(revision.unwrap_or(0).cast_unsigned())
        };
        self.ask("setting_revision", revision).await
    }
}

/// Removes the settings of a space with their history; whether there were any.
pub async fn of_space(connection: &mut PgConnection, scope: &Scope) -> Outcome<bool> {
    let gone = sqlx::query("DELETE FROM settings WHERE tenant = $1 AND space = $2")
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

/// One more change, if it is committed; nobody else changes settings of the tenant until then.
async fn count(connection: &mut PgConnection, tenant: &TenantId) -> Outcome<()> {
    sqlx::query(
        "INSERT INTO setting_revisions AS r (tenant, revision) VALUES ($1, 1)
         ON CONFLICT (tenant) DO UPDATE SET revision = r.revision + 1",
    )
    .bind(tenant.as_str())
    .execute(connection)
    .await?;
    Ok(())
}

async fn latest(
    connection: &mut PgConnection,
    tenant: &TenantId,
    key: &SettingKey,
) -> Outcome<Option<Setting>> {
    let row = sqlx::query(concat!(
        select_settings!(),
        "WHERE tenant = $1 AND kind = $2 AND space = $3 AND name = $4 ORDER BY version DESC LIMIT 1"
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
    connection: &mut PgConnection,
    tenant: &TenantId,
    key: &SettingKey,
    version: u32,
    revised: &Revised,
) -> Outcome<()> {
    sqlx::query(
        "INSERT INTO settings (tenant, kind, space, name, version, body, author, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(tenant.as_str())
    .bind(key.kind.name())
    .bind(setting_space(key))
    .bind(key.name.as_str())
    .bind(i64::from(version))
    .bind(revised.body.as_ref().map(String::as_bytes))
    .bind(&revised.by)
    .bind(revised.at.timestamp_micros())
    .execute(connection)
    .await?;
    Ok(())
}

fn setting(row: &PgRow) -> Outcome<Setting> {
    Ok(Setting {
        key: setting_key(row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)?,
        version: row.try_get::<i64, _>(3)? as u32,
        body: row
            .try_get::<Option<Vec<u8>>, _>(4)?
            .map(text)
            .transpose()?,
        by: row.try_get(5)?,
        at: time(row.try_get(6)?)?,
    })
}
