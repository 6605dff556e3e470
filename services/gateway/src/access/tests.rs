//! Access over a key ring that a test can take away.

use std::sync::Mutex;
use std::sync::atomic::AtomicU32;

use memfleet_domain::access::Usage;
use memfleet_domain::time::Timestamp;
use memfleet_ports::audit::AuditRecord;
use memfleet_ports::conformance::samples::instant;
use memfleet_ports::keys::Use;
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::store::{Result as StoreResult, StoreError};
use tokio::time::advance;

use super::*;

/// A store with some keys, which counts how often it is asked for one.
#[derive(Default)]
struct Store {
    keys: Mutex<Vec<(KeyHash, Key)>>,
    quota: Mutex<Quota>,
    is_down: AtomicBool,
    asked: AtomicU32,
}

impl Store {
    fn up(&self) -> StoreResult<()> {
        match self.is_down.load(Ordering::SeqCst) {
            true => Err(StoreError::Unavailable("down".to_owned())),
            false => Ok(()),
        }
    }

    fn put(&self, secret: &str, change: impl FnOnce(&mut Key)) {
        let hash = KeyHash::of(secret);
        let mut key = Key {
            id: KeyId::of(&hash),
            tenant: TenantId::new("acme").unwrap(),
            label: secret.to_owned(),
            grant: Grant::ALL,
            is_operator: false,
            calls_per_minute: None,
            created_at: instant(0),
            expires_at: None,
            last_used_at: None,
            revoked_at: None,
            replaced_by: None,
        };
        change(&mut key);
        let mut keys = self.keys.lock().unwrap();
        keys.retain(|(known, _)| !known.is(&hash));
        keys.push((hash, key));
    }
}

#[async_trait]
impl KeyRing for Store {
    async fn add(&self, key: &Key, hash: &KeyHash, _: &[AuditRecord]) -> StoreResult<bool> {
        let mut keys = self.keys.lock().unwrap();
        let is_new = keys.iter().all(|(_, known)| known.id != key.id);
        if is_new {
            keys.push((*hash, key.clone()));
        }
        Ok(is_new)
    }

    async fn find(&self, hash: &KeyHash) -> StoreResult<Option<Key>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.up()?;
        let keys = self.keys.lock().unwrap();
        let found = keys.iter().find(|(known, _)| known.is(hash));
        Ok(found.map(|(_, key)| key.clone()))
    }

    async fn has_any(&self) -> StoreResult<bool> {
        self.up()?;
        Ok(!self.keys.lock().unwrap().is_empty())
    }

    async fn get(&self, _: &TenantId, _: KeyId) -> StoreResult<Option<Key>> {
        unreachable!("nobody asks")
    }

    async fn list(&self, _: &TenantId, _: u32, _: Option<&PageToken>) -> StoreResult<Page<Key>> {
        unreachable!("nobody asks")
    }

    async fn revoke(
        &self,
        _: &TenantId,
        _: KeyId,
        _: Timestamp,
        _: &[AuditRecord],
    ) -> StoreResult<Option<Key>> {
        unreachable!("nobody asks")
    }

    async fn rotate(
        &self,
        _: KeyId,
        _: Timestamp,
        _: &Key,
        _: &KeyHash,
        _: &[AuditRecord],
    ) -> StoreResult<bool> {
        unreachable!("nobody asks")
    }

    async fn used(&self, _: &[Use]) -> StoreResult<()> {
        Ok(())
    }
}

#[async_trait]
impl TenantCatalog for Store {
    async fn quota(&self, _: &TenantId) -> StoreResult<Quota> {
        self.up()?;
        Ok(*self.quota.lock().unwrap())
    }

    async fn put_quota(&self, _: &TenantId, _: &Quota, _: &[AuditRecord]) -> StoreResult<()> {
        unreachable!("nobody asks")
    }

    /// Takes a tenth of a second.
    async fn stored_turns(&self, _: &TenantId) -> StoreResult<u64> {
        tokio::time::sleep(Duration::from_millis(100)).await;
        Ok(self.asked.fetch_add(1, Ordering::SeqCst).into())
    }

    async fn spaces(&self, _: &TenantId) -> StoreResult<u64> {
        unreachable!("nobody asks")
    }

    /// Takes a second.
    async fn usage(&self, _: &TenantId) -> StoreResult<Usage> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let turns = self.asked.fetch_add(1, Ordering::SeqCst).into();
        Ok(Usage {
            turns,
            ..Usage::default()
        })
    }

    async fn tenants(&self, _: u32, _: Option<&PageToken>) -> StoreResult<Page<TenantId>> {
        unreachable!("nobody asks")
    }
}

/// A clock that a test sets.
#[derive(Default)]
struct Second(AtomicU32);

impl Clock for Second {
    fn now(&self) -> Timestamp {
        instant(self.0.load(Ordering::SeqCst).into())
    }
}

/// A gateway's access to the store.
fn gateway(store: &Arc<Store>, configured: &[(&str, &str)]) -> (Access, Arc<Second>) {
    let clock = Arc::new(Second::default());
    let entry = |(tenant, key): &(&str, &str)| (TenantId::new(*tenant).unwrap(), KeyHash::of(key));
    let access = Access::new(Sources {
        keys: store.clone(),
        tenants: store.clone(),
        log: None,
        configured: configured.iter().map(entry).collect(),
        tokens: None,
        clock: clock.clone(),
    });
    (access, clock)
}

async fn reason(access: &Access, credential: Option<&str>) -> String {
    match access.identify(credential).await {
        Ok(caller) => caller.name,
        Err(fault) => fault.reason.into_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn while_no_key_exists_everybody_is_an_operator_and_never_again() {
    let store = Arc::new(Store::default());
    let (access, _) = gateway(&store, &[]);
    let caller = access.identify(None).await.unwrap();
    assert!(caller.is_operator && caller.tenant == default_tenant());
    assert_eq!(reason(&access, Some("anything")).await, "open");
    store.put("one", |key| key.revoked_at = Some(instant(0)));
    advance(FRESH).await;
    assert_eq!(reason(&access, None).await, "CREDENTIAL_MISSING");
    assert_eq!(reason(&access, Some("one")).await, "CREDENTIAL_REVOKED");
    let fault = access.renew(&caller).await.unwrap_err();
    assert_eq!(fault.reason, "CREDENTIAL_MISSING");
    store.keys.lock().unwrap().clear();
    advance(FRESH).await;
    assert_eq!(reason(&access, None).await, "CREDENTIAL_MISSING");
}

#[tokio::test(start_paused = true)]
async fn a_key_of_the_configuration_needs_no_store() {
    let store = Arc::new(Store::default());
    store.is_down.store(true, Ordering::SeqCst);
    let (access, _) = gateway(&store, &[("acme", "first"), ("globex", "second")]);
    let caller = access.identify(Some("second")).await.unwrap();
    assert_eq!(caller.tenant.as_str(), "globex");
    assert!(!caller.is_operator);
    assert!(caller.name.starts_with("config:"), "{}", caller.name);
    let other = access.identify(Some("first")).await.unwrap();
    assert_ne!(other.name, caller.name, "each has a name of its own");
    assert!(access.renew(&caller).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_revocation_holds_at_every_gateway_within_seconds() {
    let store = Arc::new(Store::default());
    store.put("one", |_| {});
    let gateways = [gateway(&store, &[]).0, gateway(&store, &[]).0];
    for access in &gateways {
        assert!(access.identify(Some("one")).await.is_ok());
    }
    assert_eq!(store.asked.load(Ordering::SeqCst), 2);
    let caller = gateways[0].identify(Some("one")).await.unwrap();
    store.put("one", |key| key.revoked_at = Some(instant(1)));
    advance(FRESH).await;
    for access in &gateways {
        assert_eq!(reason(access, Some("one")).await, "CREDENTIAL_REVOKED");
    }
    let fault = gateways[0].renew(&caller).await.unwrap_err();
    assert_eq!(fault.reason, "CREDENTIAL_REVOKED");
}

#[tokio::test(start_paused = true)]
async fn a_key_ends_at_its_time_and_not_before() {
    let store = Arc::new(Store::default());
    store.put("one", |key| key.expires_at = Some(instant(10)));
    let (access, clock) = gateway(&store, &[]);
    clock.0.store(9, Ordering::SeqCst);
    let caller = access.identify(Some("one")).await.unwrap();
    clock.0.store(10, Ordering::SeqCst);
    assert_eq!(reason(&access, Some("one")).await, "CREDENTIAL_EXPIRED");
    assert!(access.renew(&caller).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_down_known_keys_go_on_and_unknown_ones_may_be_tried_later() {
    let store = Arc::new(Store::default());
    store.put("one", |_| {});
    let (access, _) = gateway(&store, &[]);
    let name = reason(&access, Some("one")).await;
    store.is_down.store(true, Ordering::SeqCst);
    advance(FRESH * 10).await;
    assert_eq!(reason(&access, Some("one")).await, name);
    let fault = access.identify(Some("two")).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Unavailable, "{fault}");
    advance(Duration::from_mins(10)).await;
    assert_eq!(reason(&access, Some("one")).await, "STORE_UNAVAILABLE");
    store.is_down.store(false, Ordering::SeqCst);
    advance(FRESH).await;
    assert_eq!(reason(&access, Some("one")).await, name);
    assert_eq!(reason(&access, Some("two")).await, "CREDENTIAL_UNKNOWN");
}

#[tokio::test(start_paused = true)]
async fn amp_127_calls_beyond_a_quota_are_told_when_to_come_back() {
    let store = Arc::new(Store::default());
    store.put("one", |key| key.calls_per_minute = Some(2));
    store.put("two", |_| {});
    let (access, _) = gateway(&store, &[]);
    for _ in 0..2 {
        access.identify(Some("one")).await.unwrap();
    }
    let fault = access.identify(Some("one")).await.unwrap_err();
    assert_eq!(
        (fault.kind, fault.reason.as_ref()),
        (FaultKind::ResourceExhausted, "RATE_LIMITED")
    );
    assert!(fault.retry_after.is_some_and(|wait| wait > Duration::ZERO));
    assert!(access.identify(Some("two")).await.is_ok());
    store.quota.lock().unwrap().calls_per_minute = Some(1);
    advance(FRESH).await;
    assert!(access.identify(Some("two")).await.is_ok());
    let fault = access.identify(Some("two")).await.unwrap_err();
    assert_eq!(fault.metadata["limit"], "tenant");
}

#[tokio::test(start_paused = true)]
async fn refused_calls_of_a_limited_key_leave_its_tenant_its_calls() {
    let store = Arc::new(Store::default());
    store.put("limited", |key| key.calls_per_minute = Some(2));
    store.put("other", |_| {});
    store.quota.lock().unwrap().calls_per_minute = Some(10);
    let (access, _) = gateway(&store, &[]);
    let mut taken = 0;
    for _ in 0..50 {
        taken += u32::from(access.identify(Some("limited")).await.is_ok());
    }
    assert_eq!(taken, 2);
    for _ in 0..8 {
        access.identify(Some("other")).await.unwrap();
    }
    assert_eq!(reason(&access, Some("other")).await, "RATE_LIMITED");
}

/// As docs/operations/security.md and rotate.md say: a gateway that cannot reach the store hears of no revocation for five minutes.
#[tokio::test(start_paused = true)]
async fn a_revocation_that_a_gateway_cannot_read_holds_after_five_minutes_at_most() {
    let store = Arc::new(Store::default());
    store.put("one", |_| {});
    let (access, _) = gateway(&store, &[]);
    access.identify(Some("one")).await.unwrap();
    store.put("one", |key| key.revoked_at = Some(instant(1)));
    store.is_down.store(true, Ordering::SeqCst);
    advance(Duration::from_secs(299)).await;
    assert!(access.identify(Some("one")).await.is_ok());
    advance(Duration::from_secs(1)).await;
    assert_eq!(reason(&access, Some("one")).await, "STORE_UNAVAILABLE");
    store.is_down.store(false, Ordering::SeqCst);
    advance(FRESH).await;
    assert_eq!(reason(&access, Some("one")).await, "CREDENTIAL_REVOKED");
}

#[tokio::test(start_paused = true)]
async fn turns_are_counted_in_a_small_part_of_the_time_only() {
    let store = Arc::new(Store::default());
    let (access, _) = gateway(&store, &[]);
    let tenant = TenantId::new("acme").unwrap();
    assert_eq!(access.stored_turns(&tenant).await.unwrap(), 0);
    advance(Duration::from_secs(4)).await;
    assert_eq!(access.stored_turns(&tenant).await.unwrap(), 0);
    advance(Duration::from_secs(1)).await;
    assert_eq!(access.stored_turns(&tenant).await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn usage_in_a_loop_is_counted_in_a_small_part_of_the_time_only() {
    let store = Arc::new(Store::default());
    let (access, _) = gateway(&store, &[]);
    let tenant = TenantId::new("acme").unwrap();
    for _ in 0..100 {
        assert_eq!(access.usage(&tenant).await.unwrap().turns, 0);
    }
    advance(Duration::from_secs(48)).await;
    assert_eq!(access.usage(&tenant).await.unwrap().turns, 0);
    advance(Duration::from_secs(1)).await;
    assert_eq!(access.usage(&tenant).await.unwrap().turns, 1);
}

#[tokio::test(start_paused = true)]
async fn a_bootstrap_key_that_was_revoked_stays_so() {
    let store = Arc::new(Store::default());
    for _ in 0..2 {
        let (access, _) = gateway(&store, &[]);
        access.bootstrap("chosen by hand").await.unwrap();
        let caller = access.identify(Some("chosen by hand")).await.unwrap();
        assert!(caller.is_operator);
    }
    assert_eq!(store.keys.lock().unwrap().len(), 1);
    store.keys.lock().unwrap()[0].1.revoked_at = Some(instant(0));
    let (access, _) = gateway(&store, &[]);
    access.bootstrap("chosen by hand").await.unwrap();
    let refused = reason(&access, Some("chosen by hand")).await;
    assert_eq!(refused, "CREDENTIAL_REVOKED");
}
