//! What goes on while the settings of tenants cannot be read, and for how long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use memfleet_domain::FaultKind;
use memfleet_domain::assembly::{FailurePolicy, Reason, TrustMode};
use memfleet_domain::ids::TenantId;
use memfleet_domain::policy::Policy;
use memfleet_domain::turn::Role;
use memfleet_gateway::Gateway;
use memfleet_gateway::settings::SettingsCache;
use memfleet_ports::assembly::Assembly;
use memfleet_ports::capture::Capture;
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::policies::Policies;
use memfleet_ports::settings::{Put, Revised, Setting, SettingKey, Settings};
use memfleet_ports::store::{Result, StoreError};
use memfleet_sqlite::SqliteStore;

use crate::amp::{kettle, prompted, user};
use crate::capturing::{messages, record, stored, texts};
use crate::roles::{Node, acme, call_of};

/// Settings of a store that cannot always be reached.
struct Reachable {
    store: Arc<SqliteStore>,
    is_away: AtomicBool,
}

impl Reachable {
    fn there(&self) -> Result<&SqliteStore> {
        match self.is_away.load(Ordering::SeqCst) {
            true => Err(StoreError::Unavailable("away".to_owned())),
            false => Ok(&self.store),
        }
    }
}

#[async_trait]
impl Settings for Reachable {
    async fn put(&self, tenant: &TenantId, key: &SettingKey, revised: &Revised) -> Result<Put> {
        self.there()?.put(tenant, key, revised).await
    }

    async fn current(&self, tenant: &TenantId) -> Result<Vec<Setting>> {
        self.there()?.current(tenant).await
    }

    async fn get(
        &self,
        tenant: &TenantId,
        key: &SettingKey,
        version: u32,
    ) -> Result<Option<Setting>> {
        Settings::get(self.there()?, tenant, key, version).await
    }

    async fn history(
        &self,
        tenant: &TenantId,
        key: &SettingKey,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Setting>> {
        Settings::history(self.there()?, tenant, key, limit, after).await
    }

    async fn revision(&self, tenant: &TenantId) -> Result<u64> {
        self.there()?.revision(tenant).await
    }
}

async fn reachable() -> (Node, Gateway, Arc<Reachable>) {
    let node = kettle().await;
    let settings = Arc::new(Reachable {
        store: node.store.clone(),
        is_away: AtomicBool::new(false),
    });
    let gateway = Gateway {
        settings: Arc::new(SettingsCache::new(settings.clone())),
        ..node.gateway.clone()
    };
    (node, gateway, settings)
}

async fn later(seconds: u64) {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::time::resume();
}

#[tokio::test]
async fn amp_122_what_is_captured_while_the_store_is_away_is_kept_once_under_settings_that_are_known()
 {
    let (node, gateway, settings) = reachable().await;
    let mut policy = Policy::default();
    policy.format.redactions = Some(vec!["sk-[a-z]+".to_owned()]);
    gateway
        .put_policy(&acme(), None, policy, None)
        .await
        .unwrap();
    let said = [
        (Role::User, "hello"),
        (Role::Assistant, "hello, Ada"),
        (Role::User, "my key is sk-abc"),
    ];
    let spoken = |length: usize| record(messages(&said[..length]));
    gateway.record_turn(&acme(), spoken(1)).await.unwrap();
    node.settle().await;
    later(3).await;
    settings.is_away.store(true, Ordering::SeqCst);
    for length in [2, 3, 3] {
        let recorded = gateway.record_turn(&acme(), spoken(length)).await;
        assert!(recorded.unwrap().token.is_some());
    }
    let turns = stored(&node).await;
    assert_eq!(
        texts(&turns),
        ["hello", "hello, Ada", "my key is [redacted]"]
    );

    let other = call_of("globex", Duration::from_mins(1));
    let refused = gateway.record_turn(&other, spoken(1)).await.unwrap_err();
    assert_eq!(
        refused.kind,
        FaultKind::Unavailable,
        "its settings were never known"
    );
    later(5 * 60).await;
    let refused = gateway.record_turn(&acme(), spoken(3)).await.unwrap_err();
    assert_eq!(
        refused.kind,
        FaultKind::Unavailable,
        "they were known too long ago"
    );
    later(1).await;
    settings.is_away.store(false, Ordering::SeqCst);
    let again = gateway.record_turn(&acme(), spoken(3)).await.unwrap();
    assert_eq!((again.duplicates, again.token), (3, None));
}

#[tokio::test]
async fn a_block_without_delimiters_is_not_taken_for_words_while_nobody_knows_it() {
    let (_node, gateway, settings) = reachable().await;
    let mut policy = Policy::default();
    policy.format.trust = Some(TrustMode::Plain);
    gateway
        .put_policy(&acme(), None, policy, None)
        .await
        .unwrap();
    let spoken = || record(messages(&[(Role::User, "hello")]));
    gateway.record_turn(&acme(), spoken()).await.unwrap();
    later(3).await;
    settings.is_away.store(true, Ordering::SeqCst);
    let refused = gateway.record_turn(&acme(), spoken()).await.unwrap_err();
    assert_eq!(refused.kind, FaultKind::Unavailable);
}

#[tokio::test]
async fn amp_122_prompts_go_on_without_memory_as_the_policy_that_is_known_says() {
    let (_node, gateway, settings) = reachable().await;
    let asked = || {
        let mut request = prompted(vec![user("What happened to my kettle?")]);
        request.policy.failure.policy = None;
        request
    };
    gateway.assemble(&acme(), asked()).await.unwrap();
    later(3).await;
    settings.is_away.store(true, Ordering::SeqCst);
    let answer = gateway.assemble(&acme(), asked()).await.unwrap();
    assert_eq!(answer.reason, Some(Reason::RetrievalUnavailable));
    assert!(answer.injection.is_none() && answer.edits.is_empty());
    settings.is_away.store(false, Ordering::SeqCst);
    later(3).await;
    let mut closed = Policy::default();
    closed.failure.policy = Some(FailurePolicy::Closed);
    gateway
        .put_policy(&acme(), None, closed, None)
        .await
        .unwrap();
    gateway.assemble(&acme(), asked()).await.unwrap();
    later(3).await;
    settings.is_away.store(true, Ordering::SeqCst);
    let refused = gateway.assemble(&acme(), asked()).await.unwrap_err();
    assert_eq!(refused.kind, FaultKind::Unavailable);
}
