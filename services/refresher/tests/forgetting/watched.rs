//! An erasure that counts what is asked of it, and fails and waits where it is told to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use memfleet_domain::{Scope, Timestamp};
use memfleet_ports::erasure::{Erased, Erasure};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::store::{Result, StoreError};
use memfleet_sqlite::SqliteStore;
use tokio::sync::{Notify, Semaphore};

use crate::bench::{Bench, bench};

pub struct Watched {
    store: Arc<SqliteStore>,
    /// Nothing can expire here.
    refused: Option<Scope>,
    pub scrubs: AtomicU32,
    /// How many scrubs from now on fail.
    pub failing: AtomicU32,
    /// A scrub takes one before it does anything.
    pub permits: Semaphore,
    /// A scrub has begun.
    pub begun: Notify,
    /// A scrub has worked.
    pub done: Notify,
}

/// A bench on an erasure that fails for one space.
pub async fn watched(refused: Option<Scope>) -> (Bench, Arc<Watched>) {
    let mut bench = bench().await;
    let watched = Arc::new(Watched {
        store: bench.store.clone(),
        refused,
        scrubs: AtomicU32::new(0),
        failing: AtomicU32::new(0),
        permits: Semaphore::new(Semaphore::MAX_PERMITS),
        begun: Notify::new(),
        done: Notify::new(),
    });
    bench.refresher.erasure = watched.clone();
    (bench, watched)
}

#[async_trait]
impl Erasure for Watched {
    async fn plan(&self, scope: &Scope, filter: &TurnFilter) -> Result<Erased> {
        self.store.plan(scope, filter).await
    }

    async fn remove(&self, scope: &Scope, filter: &TurnFilter) -> Result<Erased> {
        self.store.remove(scope, filter).await
    }

    async fn expire(&self, scope: &Scope, now: Timestamp, most: u32) -> Result<Erased> {
        if self.refused.as_ref() == Some(scope) {
            return Err(StoreError::Damaged("a page".into()));
        }
        self.store.expire(scope, now, most).await
    }

    async fn scrub(&self) -> Result<()> {
        self.scrubs.fetch_add(1, Ordering::SeqCst);
        self.begun.notify_one();
        self.permits.acquire().await.expect("it is open").forget();
        let one_less = |left: u32| left.checked_sub(1);
        let (set, fetch) = (Ordering::SeqCst, Ordering::SeqCst);
        if self.failing.fetch_update(set, fetch, one_less).is_ok() {
            return Err(StoreError::Unavailable("readers".into()));
        }
        self.store.scrub().await?;
        self.done.notify_one();
        Ok(())
    }

    async fn expired(&self, now: Timestamp) -> Result<Vec<Scope>> {
        self.store.expired(now).await
    }
}
