//! Removing turns for good. One search decides what goes, for the plan and for the deed.

mod dependents;
mod expire;
mod find;
mod prompts;
mod remove;

use std::sync::Arc;

use async_trait::async_trait;
use memfleet_domain::Scope;
use memfleet_domain::time::Timestamp;
use memfleet_ports::erasure::{Cutoff, Erased, Erasure};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::store::Result;
use memfleet_ports::undelivered::{Matching, Undelivered, Unreadable};

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
        let filter = with_replaced(filter);
        // Asked first: what is accepted from here on either matches, or is after the forget.
        let last = self.queue.last_acceptance().await?;
        let undelivered = self.queue.matching(scope, &filter, Unreadable::All).await?;
        let attempt = || self.bury(scope, &filter, undelivered.clone(), last);
        let erased = self.store.ask("erase", twice(attempt)).await?;
        if !undelivered.is_empty() {
            self.queue.withdraw(scope, &undelivered).await?;
        }
        Ok(erased)
    }

    async fn expire(&self, scope: &Scope, now: Timestamp, most: u32) -> Result<Erased> {
        let cutoff = expire::cutoff(&self.store, scope, now);
        let cutoff = self.store.ask("retention", cutoff).await?;
        let last = self.queue.last_acceptance().await?;
        let undelivered = match cutoff.turns_before {
            Some(before) => {
                let unreadable = Unreadable::Before(before);
                self.queue
                    .matching(scope, &expire::past(before), unreadable)
                    .await?
            }
            None => Matching::default(),
        };
        let attempt = || self.bury_expired(scope, &cutoff, undelivered.clone(), last, most);
        let erased = self.store.ask("expire", twice(attempt)).await?;
        // A hold that came in between leaves them as it leaves all.
        if erased.undelivered + erased.unreadable > 0 {
            self.queue.withdraw(scope, &undelivered).await?;
        }
        Ok(erased)
    }

    /// Nothing: dead tuples are vacuumed by the server, and its log and backups are its owner's.
    async fn scrub(&self) -> Result<()> {
        Ok(())
    }

    async fn expired(&self, now: Timestamp) -> Result<Vec<Scope>> {
        let spaces = expire::retained(&self.store, now);
        let spaces = self.store.ask("spaces_to_expire", spaces).await?;
        let with_period = spaces.iter().filter(|space| space.has_period());
        let scopes: Vec<_> = with_period.map(|space| space.scope.clone()).collect();
        let lettered = self.queue.with_letters(&scopes).await?;
        let due = spaces
            .into_iter()
            .filter(|space| space.is_due() || lettered.contains(&space.scope));
        Ok(due.map(|space| space.scope).collect())
    }
}

impl PostgresErasure {
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
        let mut is_something = doomed.is_something();
        if is_something {
            remove::remove(&mut write, scope, &doomed, last as i64).await?;
        }
        if doomed.everything {
            is_something |= prompts::of_space(&mut write, scope).await?;
        }
        if is_something {
            write.commit().await?;
        }
        Ok(erased)
    }

    /// The same of a step of retention.
    async fn bury_expired(
        &self,
        scope: &Scope,
        cutoff: &Cutoff,
        undelivered: Matching,
        last: u64,
        most: u32,
    ) -> Outcome<Erased> {
        let mut write = self.store.write_patiently(&scope.tenant).await?;
        let erased =
            expire::expire(&mut write, scope, cutoff, undelivered, last as i64, most).await?;
        if erased != Erased::default() {
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
