//! Removing turns for good. One search decides what goes, for the plan and for the deed.

mod find;
mod remove;

use std::sync::Arc;

use async_trait::async_trait;
use chrono::Days;
use memfleet_columns::name;
use memfleet_domain::Scope;
use memfleet_domain::ids::{SpaceId, TenantId};
use memfleet_domain::time::{TimeRange, Timestamp};
use memfleet_ports::erasure::{Erased, Erasure};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::store::Result;
use memfleet_ports::undelivered::{Matching, Undelivered, Unreadable};
use sqlx::Row;

pub(crate) use self::find::Doomed;
use crate::failure::Outcome;
use crate::scope;
use crate::store::{PostgresStore, twice};

/// Erasure from the ledger, and from a queue that lives apart from it.
#[derive(Clone)]
pub struct PostgresErasure {
    store: PostgresStore,
    queue: Arc<dyn Undelivered>,
}

impl PostgresErasure {
    /// What is undelivered is withdrawn from `queue`.
    pub fn new(store: PostgresStore, queue: Arc<dyn Undelivered>) -> Self {
        Self { store, queue }
    }
}

impl std::fmt::Debug for PostgresErasure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("PostgresErasure")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Erasure for PostgresErasure {
    async fn plan(&self, scope: &Scope, filter: &TurnFilter) -> Result<Erased> {
        let filter = with_replaced(filter);
        let undelivered = self.queue.matching(scope, &filter, Unreadable::All).await?;
        let doomed = async {
            let mut read = self.store.read(&scope.tenant).await?;
            let space = scope::find(&mut read, scope).await?;
            find::find(&mut read, scope, space, &filter, undelivered).await
        };
        Ok(self.store.ask("plan_erasure", doomed).await?.erased())
    }

    async fn remove(&self, scope: &Scope, filter: &TurnFilter) -> Result<Erased> {
        self.take_out(scope, filter, Unreadable::All).await
    }

    async fn expire(&self, scope: &Scope, before: Timestamp) -> Result<Erased> {
        let filter = TurnFilter {
            time: TimeRange {
                start: None,
                end: Some(before),
            },
            ..TurnFilter::default()
        };
        self.take_out(scope, &filter, Unreadable::Before(before))
            .await
    }

    /// Nothing: dead tuples are vacuumed by the server, and its log and backups are its owner's.
    async fn scrub(&self) -> Result<()> {
        Ok(())
    }

    async fn expired(&self, now: Timestamp) -> Result<Vec<(Scope, Timestamp)>> {
        let mut expired = Vec::new();
        let spaces = self
            .store
            .ask("spaces_with_retention", with_retention(&self.store))
            .await?;
        let scopes: Vec<_> = spaces.iter().map(|space| space.scope.clone()).collect();
        let lettered = self.queue.with_letters(&scopes).await?;
        for space in spaces {
            let Some(before) = now.checked_sub_days(Days::new(space.retention_days)) else {
                continue;
            };
            let oldest = space.oldest;
            let is_due = oldest.is_some_and(|oldest| oldest < before.timestamp_micros());
            if is_due || lettered.contains(&space.scope) {
                expired.push((space.scope, before));
            }
        }
        Ok(expired)
    }
}

impl PostgresErasure {
    async fn take_out(
        &self,
        scope: &Scope,
        filter: &TurnFilter,
        unreadable: Unreadable,
    ) -> Result<Erased> {
        let filter = with_replaced(filter);
        // Asked first: what is accepted from here on either matches, or is after the forget.
        let last = self.queue.last_acceptance().await?;
        let undelivered = self.queue.matching(scope, &filter, unreadable).await?;
        let attempt = || self.bury(scope, &filter, undelivered.clone(), last);
        let erased = self.store.ask("erase", twice(attempt)).await?;
        if !undelivered.is_empty() {
            self.queue.withdraw(scope, &undelivered).await?;
        }
        Ok(erased)
    }

    /// The part of the ledger, in one transaction.
    async fn bury(
        &self,
        scope: &Scope,
        filter: &TurnFilter,
        undelivered: Matching,
        last: u64,
    ) -> Outcome<Erased> {
        let mut write = self.store.write_patiently(&scope.tenant).await?;
        let space = scope::lock(&mut write, scope).await?;
        let doomed: Doomed = find::find(&mut write, scope, space, filter, undelivered).await?;
        let erased = doomed.erased();
        if doomed.is_something() {
            remove::remove(&mut write, scope, &doomed, last as i64).await?;
            write.commit().await?;
        }
        Ok(erased)
    }
}

fn with_replaced(filter: &TurnFilter) -> TurnFilter {
    TurnFilter {
        include_replaced: true,
        ..filter.clone()
    }
}

/// A space with a retention period.
struct Retention {
    scope: Scope,
    retention_days: u64,
    /// The event time, else recorded time, of its first turn.
    oldest: Option<i64>,
}

async fn with_retention(store: &PostgresStore) -> Outcome<Vec<Retention>> {
    let rows =
        sqlx::query("SELECT tenant, name, retention_days, oldest FROM spaces_with_retention()")
            .fetch_all(&mut *store.sweep().await?)
            .await?;
    rows.iter()
        .map(|row| {
            let scope = Scope {
                tenant: name(TenantId::new(row.try_get::<&str, _>(0)?))?,
                space: name(SpaceId::new(row.try_get::<&str, _>(1)?))?,
            };
            Ok(Retention {
                scope,
                retention_days: row.try_get::<i64, _>(2)? as u64,
                oldest: row.try_get(3)?,
            })
        })
        .collect()
}
