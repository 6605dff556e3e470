//! What language models cost a tenant on a day.

use std::ops::RangeInclusive;

use async_trait::async_trait;
use chrono::{Datelike, NaiveDate};
use memfleet_columns::day;
use memfleet_domain::ids::TenantId;
use memfleet_ports::store::Result;
use memfleet_ports::usage::{Amount, Limits, Reservation, UsageLedger};
use sqlx::{PgConnection, Row};

use crate::failure::Outcome;
use crate::store::PostgresStore;

#[async_trait]
impl UsageLedger for PostgresStore {
    async fn reserve(
        &self,
        tenant: &TenantId,
        day: NaiveDate,
        most: Amount,
        limits: &Limits,
    ) -> Result<Reservation> {
        let reservation = async {
            let mut write = self.write(tenant).await?;
            let together = lock(&mut write, tenant, day).await?.plus(most);
            if let Some(kind) = limits.passed_by(together) {
                return Ok(Reservation::Refused(kind));
            }
            put(&mut write, tenant, day, together).await?;
            write.commit().await?;
            Ok(Reservation::Made)
        };
        self.ask("reserve_use", reservation).await
    }

    async fn settle(
        &self,
        tenant: &TenantId,
        day: NaiveDate,
        reserved: Amount,
        cost: Amount,
    ) -> Result<()> {
        let settled = async {
            let mut write = self.write(tenant).await?;
            let counted = lock(&mut write, tenant, day).await?;
            put(&mut write, tenant, day, counted.less(reserved).plus(cost)).await?;
            write.commit().await
        };
        self.ask("settle_use", settled).await
    }

    async fn used(&self, tenant: &TenantId, day: NaiveDate) -> Result<Amount> {
        let used = async {
            let mut read = self.read(tenant).await?;
            let row = sqlx::query(
                "SELECT calls, tokens, micros FROM model_use WHERE tenant = $1 AND day = $2",
            )
            .bind(tenant.as_str())
            .bind(day.num_days_from_ce())
            .fetch_optional(&mut *read)
            .await?;
            row.as_ref().map_or(Ok(Amount::default()), amount)
        };
        self.ask("use", used).await
    }

    async fn used_between(
        &self,
        tenant: &TenantId,
        days: RangeInclusive<NaiveDate>,
    ) -> Result<Vec<(NaiveDate, Amount)>> {
        let used = async {
            let mut read = self.read(tenant).await?;
            let rows = sqlx::query(
                "SELECT calls, tokens, micros, day FROM model_use
                 WHERE tenant = $1 AND day BETWEEN $2 AND $3 ORDER BY day",
            )
            .bind(tenant.as_str())
            .bind(days.start().num_days_from_ce())
            .bind(days.end().num_days_from_ce())
            .fetch_all(&mut *read)
            .await?;
            let days = rows
                .iter()
                .map(|row| Ok((day(row.try_get(3)?)?, amount(row)?)));
            days.collect()
        };
        self.ask("use_between", used).await
    }
}

/// The row of a day, made where there is none, and nobody else's until the transaction ends: two reservations at a time cannot pass a
/// limit together.
async fn lock(connection: &mut PgConnection, tenant: &TenantId, day: NaiveDate) -> Outcome<Amount> {
    let row = sqlx::query(
        "INSERT INTO model_use AS u (tenant, day, calls, tokens, micros) VALUES ($1, $2, 0, 0, 0)
         ON CONFLICT (tenant, day) DO UPDATE SET calls = u.calls RETURNING u.calls, u.tokens, u.micros",
    )
    .bind(tenant.as_str())
    .bind(day.num_days_from_ce())
    .fetch_one(connection)
    .await?;
    amount(&row)
}

fn amount(row: &sqlx::postgres::PgRow) -> Outcome<Amount> {
    let number = |index| row.try_get::<i64, _>(index).map(i64::cast_unsigned);
    Ok(Amount {
        calls: number(0)?,
        tokens: number(1)?,
        micros: number(2)?,
    })
}

async fn put(
    connection: &mut PgConnection,
    tenant: &TenantId,
    day: NaiveDate,
    amount: Amount,
) -> Outcome<()> {
    sqlx::query(
        "UPDATE model_use SET calls = $3, tokens = $4, micros = $5 WHERE tenant = $1 AND day = $2",
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
