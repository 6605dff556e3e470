//! What happened and is to be told: a row in the transaction of the change, taken out once it was heard.

use std::collections::BTreeMap;

use async_trait::async_trait;
use futures::future::join_all;
use memfleet_columns::name;
use memfleet_domain::Scope;
use memfleet_domain::ids::{SpaceId, TenantId};
use memfleet_domain::time::Timestamp;
use memfleet_ports::outbox::{Audience, Backlog, Happening, Kind, Outbox};
use memfleet_ports::store::{Result, StoreError};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use crate::failure::Outcome;
use crate::store::PostgresStore;
use crate::transaction::Transaction;

/// Who tells holds this advisory lock of the database, so that two processes do not do the same work.
const LOCK: i64 = 0x6d65_6d66_6f75_7462;

/// Notes that a space went from one change sequence to another; nothing where it did not.
pub async fn note(
    connection: &mut PgConnection,
    scope: &Scope,
    kind: Kind,
    after: i64,
    change: i64,
) -> Outcome<()> {
    if change == after {
        return Ok(());
    }
    sqlx::query(
        "INSERT INTO outbox (tenant, space, kind, after, change) VALUES ($1, $2, $3, $4, $5)",
    )
    .bind(scope.tenant.as_str())
    .bind(scope.space.as_str())
    .bind(kind.name())
    .bind(after)
    .bind(change)
    .execute(connection)
    .await?;
    Ok(())
}

#[async_trait]
impl Outbox for PostgresStore {
    /// One transaction: while it lasts nobody else tells, and what was told is let go of with its commit.
    async fn relay(&self, audience: &dyn Audience, most: u32) -> Result<u32> {
        let Some((mut telling, waiting)) = self.named(self.begin_telling(most).await)? else {
            return Ok(0);
        };
        let mut spaces: BTreeMap<Scope, Vec<(i64, Happening)>> = BTreeMap::new();
        for (number, happening) in waiting {
            let of_space = spaces.entry(happening.scope.clone()).or_default();
            of_space.push((number, happening));
        }
        let tellings = spaces.values().map(|of_space| tell(audience, of_space));
        let (told, troubles): (Vec<_>, Vec<_>) = join_all(tellings).await.into_iter().unzip();
        let told = told.concat();
        let done = async {
            if !told.is_empty() {
                sqlx::query("SELECT outbox_told($1)")
                    .bind(&told)
                    .execute(&mut *telling)
                    .await?;
            }
            telling.commit().await
        };
        self.named(done.await)?;
        let trouble = troubles.into_iter().flatten().next();
        trouble.map_or(Ok(told.len() as u32), Err)
    }

    async fn backlog(&self) -> Result<Backlog> {
        let asked = async {
            let row = sqlx::query("SELECT events, oldest FROM outbox_backlog()")
                .fetch_one(&mut *self.sweep().await?)
                .await?;
            let oldest: Option<i64> = row.try_get(1)?;
            Ok(Backlog {
                events: row.try_get::<i64, _>(0)? as u64,
                oldest: oldest.and_then(Timestamp::from_timestamp_micros),
            })
        };
        self.named(asked.await)
    }
}

impl PostgresStore {
    /// What waits, under the lock of whoever tells; nothing while another process has it.
    async fn begin_telling(
        &self,
        most: u32,
    ) -> Outcome<Option<(Transaction, Vec<(i64, Happening)>)>> {
        let mut telling = self.write_across().await?;
        let is_ours = sqlx::query_scalar("SELECT pg_try_advisory_xact_lock($1)");
        if !is_ours.bind(LOCK).fetch_one(&mut *telling).await? {
            return Ok(None);
        }
        let rows = sqlx::query(
            "SELECT number, tenant, space, kind, after, change, happened_at FROM outbox_waiting($1) ORDER BY number",
        )
        .bind(i64::from(most))
        .fetch_all(&mut *telling)
        .await?;
        let waiting = rows.iter().map(read).collect::<Outcome<Vec<_>>>()?;
        Ok(Some((telling, waiting)))
    }
}

/// The happenings of a space, one after the other; the numbers of those that were heard, and why the next one was not.
async fn tell(
    audience: &dyn Audience,
    of_space: &[(i64, Happening)],
) -> (Vec<i64>, Option<StoreError>) {
    let mut told = Vec::new();
    for (number, happening) in of_space {
        if let Err(error) = audience.tell(happening).await {
            return (told, Some(error));
        }
        told.push(*number);
    }
    (told, None)
}

fn read(row: &PgRow) -> Outcome<(i64, Happening)> {
    let kind: &str = row.try_get(3)?;
    let kind = Kind::named(kind).ok_or_else(|| {
        StoreError::Damaged(format!(
            "the outbox holds `{kind}`, which is no kind of event"
        ))
    })?;
    let happening = Happening {
        scope: Scope {
            tenant: name(TenantId::new(row.try_get::<&str, _>(1)?))?,
            space: name(SpaceId::new(row.try_get::<&str, _>(2)?))?,
        },
        kind,
        after: row.try_get::<i64, _>(4)? as u64,
        change: row.try_get::<i64, _>(5)? as u64,
        at: Timestamp::from_timestamp_micros(row.try_get(6)?).unwrap_or(Timestamp::MIN_UTC),
    };
    Ok((row.try_get(0)?, happening))
}
