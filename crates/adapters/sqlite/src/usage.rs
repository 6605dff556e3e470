//! What language models cost a tenant on a day.

use std::ops::RangeInclusive;

use async_trait::async_trait;
use chrono::{Datelike, NaiveDate};
use memfleet_columns::day;
use memfleet_domain::ids::TenantId;
use memfleet_ports::store::Result;
use memfleet_ports::usage::{Amount, Limits, Reservation, UsageLedger};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::failure::Outcome;
use crate::store::SqliteStore;

#[async_trait]
impl UsageLedger for SqliteStore {
    async fn reserve(
        &self,
        tenant: &TenantId,
        day: NaiveDate,
        most: Amount,
        limits: &Limits,
    ) -> Result<Reservation> {
        let mut write = self.write().await?;
        let together = used(&mut write, tenant, day).await?.plus(most);
        if let Some(kind) = limits.passed_by(together) {
            return Ok(Reservation::Refused(kind));
        }
        put(&mut write, tenant, day, together).await?;
        write.commit().await?;
        Ok(Reservation::Made)
    }

    async fn settle(
        &self,
        tenant: &TenantId,
        day: NaiveDate,
        reserved: Amount,
        cost: Amount,
    ) -> Result<()> {
        let mut write = self.write().await?;
        let counted = used(&mut write, tenant, day).await?;
        put(&mut write, tenant, day, counted.less(reserved).plus(cost)).await?;
        Ok(write.commit().await?)
    }

    async fn used(&self, tenant: &TenantId, day: NaiveDate) -> Result<Amount> {
        Ok(used(&mut *self.look_up().await?, tenant, day).await?)
    }

    async fn used_between(
        &self,
        tenant: &TenantId,
        days: RangeInclusive<NaiveDate>,
    ) -> Result<Vec<(NaiveDate, Amount)>> {
        Ok(used_between(&mut *self.read().await?, tenant, days).await?)
    }
}

async fn used(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    day: NaiveDate,
) -> Outcome<Amount> {
    let row =
        sqlx::query("SELECT calls, tokens, micros FROM model_use WHERE tenant = ? AND day = ?")
            .bind(tenant.as_str())
            .bind(day.num_days_from_ce())
            .fetch_optional(connection)
            .await?;
    row.as_ref().map_or(Ok(Amount::default()), amount)
}

async fn used_between(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    days: RangeInclusive<NaiveDate>,
) -> Outcome<Vec<(NaiveDate, Amount)>> {
    let rows = sqlx::query(
        "SELECT calls, tokens, micros, day FROM model_use WHERE tenant = ? AND day BETWEEN ? AND ? ORDER BY day",
    )
    .bind(tenant.as_str())
    .bind(days.start().num_days_from_ce())
    .bind(days.end().num_days_from_ce())
    .fetch_all(connection)
    .await?;
    let days = rows
        .iter()
        .map(|row| Ok((day(row.try_get(3)?)?, amount(row)?)));
    days.collect()
}

fn amount(row: &SqliteRow) -> Outcome<Amount> {
    let number = |index| row.try_get::<i64, _>(index).map(i64::cast_unsigned);
    Ok(Amount {
        calls: number(0)?,
        tokens: number(1)?,
        micros: number(2)?,
    })
}

async fn put(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    day: NaiveDate,
    amount: Amount,
) -> Outcome<()> {
    sqlx::query(
        "INSERT INTO model_use (tenant, day, calls, tokens, micros) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (tenant, day) DO UPDATE SET calls = excluded.calls, tokens = excluded.tokens, micros = excluded.micros",
    )
    .bind(tenant.as_str())
    .bind(day.num_days_from_ce())
    .bind(amount.calls.cast_signed())
    .bind(amount.tokens.cast_signed())
    .bind(amount.micros.cast_signed())
    .execute(connection)
    .await?;
    Ok(())
}
