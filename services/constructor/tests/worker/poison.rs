//! Batches that cannot be indexed become dead letters and hold up nobody else.

use std::sync::Arc;

use async_trait::async_trait;
use memfleet_domain::Scope;
use memfleet_domain::embedding::HeldEmbeddings;
use memfleet_domain::ids::TenantId;
use memfleet_domain::space::{LegalHold, Locale, Session, Space, SpaceSettings};
use memfleet_domain::time::Timestamp;
use memfleet_ports::ledger::{Ledger, Page, PageToken};
use memfleet_ports::queue::IngestQueue;
use memfleet_ports::spaces::SpaceCatalog;
use memfleet_ports::store::{Result, StoreError};
use memfleet_sqlite::SqliteStore;

use crate::bench::{Bench, batch_in, bench, space};

/// A catalogue that cannot read one space.
struct Failing {
    catalogue: Arc<SqliteStore>,
    space: Scope,
    error: StoreError,
}

#[async_trait]
impl SpaceCatalog for Failing {
    async fn put(&self, scope: &Scope, settings: &SpaceSettings, now: Timestamp) -> Result<Space> {
        self.catalogue.put(scope, settings, now).await
    }

    async fn hold(&self, scope: &Scope, hold: Option<&LegalHold>) -> Result<Option<Space>> {
        self.catalogue.hold(scope, hold).await
    }

    async fn get(&self, scope: &Scope) -> Result<Option<Space>> {
        self.catalogue.get(scope).await
    }

    async fn locale(&self, scope: &Scope) -> Result<Option<Locale>> {
        if *scope == self.space {
            return Err(self.error.clone());
        }
        self.catalogue.locale(scope).await
    }

    async fn embeddings(&self, scope: &Scope) -> Result<HeldEmbeddings> {
        self.catalogue.embeddings(scope).await
    }

    async fn list(
        &self,
        tenant: &TenantId,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Space>> {
        SpaceCatalog::list(&*self.catalogue, tenant, limit, after).await
    }

    async fn sessions(
        &self,
        scope: &Scope,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Session>> {
        self.catalogue.sessions(scope, limit, after).await
    }
}

fn poisoned() -> Scope {
    space("poisoned")
}

async fn failing(error: StoreError) -> Bench {
    let mut bench = bench().await;
    bench.constructor.options.attempts = 2;
    bench.constructor.spaces = Arc::new(Failing {
        catalogue: bench.store.clone(),
        space: poisoned(),
        error,
    });
    bench
}

async fn is_stored(bench: &Bench, scope: &Scope, text: &str) -> bool {
    let batch = batch_in(scope, &[text]).id;
    bench.store.batch(scope, batch).await.unwrap().is_some()
}

#[tokio::test]
async fn a_batch_that_cannot_be_indexed_is_buried_and_its_neighbours_are_stored() {
    let bench = failing(StoreError::Damaged("a page".into())).await;
    let others = [space("ada"), space("bob")];
    bench.publish(&batch_in(&others[0], &["Before."])).await;
    bench.publish(&batch_in(&poisoned(), &["Poison."])).await;
    bench.publish(&batch_in(&others[1], &["Behind."])).await;
    assert!(
        bench.constructor.round().await.is_err(),
        "it is tried again"
    );
    assert!(is_stored(&bench, &others[0], "Before.").await);
    assert!(is_stored(&bench, &others[1], "Behind.").await);
    assert!(bench.constructor.round().await.unwrap());
    let letters = bench
        .store
        .dead_letters(&poisoned().tenant, Some(&poisoned().space), 10, None)
        .await;
    let letters = letters.unwrap().items;
    assert_eq!((letters.len(), letters[0].attempts), (1, 2));
    let reason = &letters[0].reason;
    assert!(reason.starts_with("STORE_REFUSED"), "{reason}");
    assert_eq!(bench.depth().await.batches, 0);
}

#[tokio::test]
async fn what_waits_behind_a_failing_batch_of_its_space_keeps_its_attempts() {
    let bench = failing(StoreError::Damaged("a page".into())).await;
    bench.publish(&batch_in(&poisoned(), &["First."])).await;
    bench.publish(&batch_in(&poisoned(), &["Second."])).await;
    bench.constructor.round().await.unwrap_err();
    let deliveries = bench.store.take(10).await.unwrap();
    let attempts = deliveries.iter().map(|delivery| delivery.attempt);
    assert_eq!(attempts.collect::<Vec<_>>(), [2, 1]);
}

#[tokio::test]
async fn a_store_that_is_down_buries_nothing() {
    let bench = failing(StoreError::Unavailable("busy".into())).await;
    bench.publish(&batch_in(&poisoned(), &["Stays."])).await;
    bench.publish(&batch_in(&space("ada"), &["Waits."])).await;
    for _ in 0..4 {
        bench.constructor.round().await.unwrap_err();
    }
    let depth = bench.depth().await;
    assert_eq!((depth.batches, depth.dead_letters), (2, 0));
    let deliveries = bench.store.take(10).await.unwrap();
    let attempts = deliveries.iter().map(|delivery| delivery.attempt);
    assert_eq!(attempts.collect::<Vec<_>>(), [1, 1], "none was counted");
}
