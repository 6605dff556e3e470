//! What every key ring, catalogue of tenants and audit log does: they are one store, and acts are stored with their records.

use memfleet_domain::access::{Grant, KeyHash, Quota, Right, Rights, SpacePattern};
use memfleet_domain::ids::{KeyId, TenantId};
use memfleet_domain::time::TimeRange;

use super::samples::{batch_in, home, indexed, instant, scope, turn_in};
use crate::audit::{AuditFilter, AuditKind, AuditLog, AuditRecord, AuditedTurn};
use crate::keys::{Key, KeyRing};
use crate::ledger::{Ledger, PageToken};
use crate::store::StoreError;
use crate::tenants::TenantCatalog;

/// Runs every case on a store that is all of them, and a ledger.
#[macro_export]
macro_rules! keys_conformance {
    ($fresh:ident) => {
        $crate::conformance_cases!(
            $fresh,
            keys,
            [
                a_key_is_found_by_its_secret_and_reads_back_as_it_was,
                a_key_is_added_once,
                keys_are_listed_by_age_in_pages,
                a_revoked_key_stays_revoked,
                a_rotation_ends_the_old_key_and_happens_once,
                the_last_use_only_moves_on,
                another_tenant_reaches_no_key,
                acts_come_with_their_records,
                records_are_listed_newest_first_and_filtered,
                records_of_every_kind_read_back,
                records_expire_and_others_stay,
                quotas_and_usage_are_a_tenants_own,
                tenants_are_those_with_a_key_a_quota_or_a_space,
            ]
        );
    };
}

fn tenant(name: &str) -> TenantId {
    TenantId::new(name).expect("a valid sample")
}

fn sample(tenant_name: &str, secret: &str, second: i64) -> (Key, KeyHash) {
    let hash = KeyHash::of(secret);
    let key = Key {
        id: KeyId::of(&hash),
        tenant: tenant(tenant_name),
        label: format!("the key {secret}"),
        grant: Grant {
            rights: Rights::from_iter([Right::Read, Right::Admin]),
            spaces: vec![SpacePattern::new("support/*").expect("a valid sample")],
        },
        is_operator: true,
        calls_per_minute: Some(u32::MAX),
        created_at: instant(second),
        expires_at: Some(instant(1_000)),
        last_used_at: None,
        revoked_at: None,
        replaced_by: None,
    };
    (key, hash)
}

fn record(tenant_name: &str, kind: AuditKind, second: i64) -> AuditRecord {
    AuditRecord {
        at: instant(second),
        tenant: tenant(tenant_name),
        kind,
        caller: "somebody".into(),
        request_id: "r-1".into(),
        space: Some(home().space),
        key: Some(KeyId::of(&KeyHash::of("k"))),
        turns: vec![AuditedTurn {
            space: home().space,
            session: None,
            turn: turn_in(&home(), "s", "t", "x").id,
        }],
        detail: [("n".to_owned(), "1".to_owned())].into(),
    }
}

async fn add(store: &impl KeyRing, key: &Key, hash: &KeyHash) -> bool {
    store.add(key, hash, &[]).await.expect("add")
}

async fn audited(store: &impl AuditLog, tenant_name: &str) -> Vec<AuditRecord> {
    let filter = AuditFilter::default();
    let page = AuditLog::list(store, &tenant(tenant_name), &filter, 100, None).await;
    page.expect("list").items
}

/// Nobody else's.
pub async fn a_key_is_found_by_its_secret_and_reads_back_as_it_was(store: &impl KeyRing) {
    assert_eq!(store.has_any().await, Ok(false));
    let (key, hash) = sample("acme", "one", 1);
    assert!(add(store, &key, &hash).await);
    assert_eq!(store.has_any().await, Ok(true));
    assert_eq!(store.find(&hash).await, Ok(Some(key.clone())));
    assert_eq!(store.get(&key.tenant, key.id).await, Ok(Some(key)));
    assert_eq!(store.find(&KeyHash::of("two")).await, Ok(None));
    let (mut open, hash) = sample("acme", "two", 1);
    open.grant = Grant::ALL;
    (open.is_operator, open.calls_per_minute, open.expires_at) = (false, None, None);
    assert!(add(store, &open, &hash).await);
    assert_eq!(store.find(&hash).await, Ok(Some(open)));
}

/// By whoever comes first, and only that one is recorded.
pub async fn a_key_is_added_once(store: &(impl KeyRing + AuditLog)) {
    let (key, hash) = sample("acme", "one", 1);
    let records = [record("acme", AuditKind::KeyCreated, 1)];
    assert_eq!(store.add(&key, &hash, &records).await, Ok(true));
    let again = Key {
        label: "another".into(),
        ..key.clone()
    };
    assert_eq!(store.add(&again, &hash, &records).await, Ok(false));
    assert_eq!(store.find(&hash).await, Ok(Some(key)));
    assert_eq!(audited(store, "acme").await.len(), 1);
}

/// Every one once.
pub async fn keys_are_listed_by_age_in_pages(store: &impl KeyRing) {
    for number in 0..7 {
        // Two of each age.
        let (key, hash) = sample("acme", &number.to_string(), 10 - number / 2);
        add(store, &key, &hash).await;
    }
    let (mut listed, mut after) = (Vec::new(), None::<PageToken>);
    loop {
        let page = KeyRing::list(store, &tenant("acme"), 2, after.as_ref()).await;
        let page = page.expect("list");
        listed.extend(page.items);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(listed.len(), 7);
    assert!(
        listed
            .windows(2)
            .all(|pair| (pair[0].created_at, pair[0].id) < (pair[1].created_at, pair[1].id))
    );
    let foreign = PageToken("elsewhere".into());
    let refused = KeyRing::list(store, &tenant("acme"), 2, Some(&foreign)).await;
    assert_eq!(refused, Err(StoreError::PageToken));
}

/// With the time of the first revocation.
pub async fn a_revoked_key_stays_revoked(store: &(impl KeyRing + AuditLog)) {
    let (key, hash) = sample("acme", "one", 1);
    add(store, &key, &hash).await;
    let records = [record("acme", AuditKind::KeyRevoked, 5)];
    for second in [5, 6] {
        let revoked = store.revoke(&key.tenant, key.id, instant(second), &records);
        let revoked = revoked.await.expect("revoke").expect("it is there");
        assert_eq!(revoked.revoked_at, Some(instant(5)));
    }
    assert_eq!(audited(store, "acme").await.len(), 1);
    assert!(!add(store, &key, &hash).await);
    let found = store.find(&hash).await.expect("find").expect("it is there");
    assert_eq!(found.revoked_at, Some(instant(5)));
    let nobody = KeyId::of(&KeyHash::of("nobody"));
    let revoked = store.revoke(&key.tenant, nobody, instant(5), &records);
    assert_eq!(revoked.await, Ok(None));
}

/// Also where the old key would have gone on, or ended sooner.
pub async fn a_rotation_ends_the_old_key_and_happens_once(store: &(impl KeyRing + AuditLog)) {
    for (end, until, expected) in [
        (None, 50, 50),
        (Some(instant(90)), 50, 50),
        (Some(instant(20)), 50, 20),
    ] {
        let name = format!("{end:?}");
        let (mut old, old_hash) = sample("acme", &name, 1);
        old.expires_at = end;
        add(store, &old, &old_hash).await;
        let (next, hash) = sample("acme", &format!("{name} next"), 2);
        let records = [record("acme", AuditKind::KeyRotated, 2)];
        let rotated = store.rotate(old.id, instant(until), &next, &hash, &records);
        assert_eq!(rotated.await, Ok(true));
        let (third, third_hash) = sample("acme", &format!("{name} third"), 3);
        let again = store.rotate(old.id, instant(until), &third, &third_hash, &records);
        assert_eq!(again.await, Ok(false));
        assert_eq!(store.find(&third_hash).await, Ok(None));
        let old = store.find(&old_hash).await.expect("find").expect("there");
        assert_eq!(old.expires_at, Some(instant(expected)));
        assert_eq!(old.replaced_by, Some(next.id));
        assert_eq!(store.find(&hash).await, Ok(Some(next)));
    }
    assert_eq!(audited(store, "acme").await.len(), 3);
    let (revoked, hash) = sample("acme", "revoked", 1);
    add(store, &revoked, &hash).await;
    let revoking = store.revoke(&revoked.tenant, revoked.id, instant(2), &[]);
    revoking.await.expect("revoke");
    let (next, next_hash) = sample("acme", "after", 3);
    let rotated = store.rotate(revoked.id, instant(9), &next, &next_hash, &[]);
    assert_eq!(rotated.await, Ok(false));
}

/// Notes may come late, from several gateways.
pub async fn the_last_use_only_moves_on(store: &impl KeyRing) {
    let (key, hash) = sample("acme", "one", 1);
    let (other, other_hash) = sample("globex", "two", 1);
    add(store, &key, &hash).await;
    add(store, &other, &other_hash).await;
    for second in [7, 9, 8] {
        let uses = [
            (key.tenant.clone(), key.id, instant(second)),
            (other.tenant.clone(), other.id, instant(second)),
        ];
        store.used(&uses).await.expect("used");
    }
    for hash in [hash, other_hash] {
        let found = store.find(&hash).await.expect("find").expect("there");
        assert_eq!(found.last_used_at, Some(instant(9)));
    }
}

/// Whatever id it guesses.
pub async fn another_tenant_reaches_no_key(store: &impl KeyRing) {
    let (key, hash) = sample("acme", "one", 1);
    add(store, &key, &hash).await;
    let globex = tenant("globex");
    assert_eq!(store.get(&globex, key.id).await, Ok(None));
    let page = KeyRing::list(store, &globex, 9, None).await.expect("list");
    assert_eq!(page.items, []);
    let revoked = store.revoke(&globex, key.id, instant(2), &[]).await;
    assert_eq!(revoked, Ok(None));
    let (next, next_hash) = sample("globex", "next", 2);
    let rotated = store.rotate(key.id, instant(2), &next, &next_hash, &[]);
    assert_eq!(rotated.await, Ok(false));
    let uses = [(globex, key.id, instant(5))];
    store.used(&uses).await.expect("used");
    assert_eq!(store.find(&hash).await, Ok(Some(key)));
}

/// As they were given.
pub async fn acts_come_with_their_records(store: &(impl KeyRing + TenantCatalog + AuditLog)) {
    let (key, hash) = sample("acme", "one", 1);
    let created = record("acme", AuditKind::KeyCreated, 1);
    let set = record("acme", AuditKind::QuotaSet, 2);
    let adding = store.add(&key, &hash, std::slice::from_ref(&created));
    adding.await.expect("add");
    let quota = Quota::default();
    let putting = store.put_quota(&key.tenant, &quota, std::slice::from_ref(&set));
    putting.await.expect("put");
    assert_eq!(audited(store, "acme").await, [set, created]);
    assert_eq!(audited(store, "globex").await, []);
}

/// As they were given, each kind by its own filter.
pub async fn records_of_every_kind_read_back(store: &impl AuditLog) {
    let kinds = AuditKind::ALL.iter();
    let records: Vec<_> = kinds.map(|kind| record("acme", *kind, 1)).collect();
    store.append(&records).await.expect("append");
    for record in records {
        let filter = AuditFilter {
            kinds: vec![record.kind],
            ..AuditFilter::default()
        };
        let page = AuditLog::list(store, &record.tenant, &filter, 9, None).await;
        assert_eq!(page.expect("list").items, [record]);
    }
}

/// Page by page.
pub async fn records_are_listed_newest_first_and_filtered(store: &impl AuditLog) {
    let kinds = [AuditKind::Injected, AuditKind::Refused];
    let records: Vec<_> = (0..10)
        .map(|n| record("acme", kinds[n % 2], n as i64 / 3))
        .collect();
    store.append(&records).await.expect("append");
    let others = [record("globex", AuditKind::Refused, 1)];
    store.append(&others).await.expect("append");
    let filter = AuditFilter {
        kinds: vec![AuditKind::Refused],
        time: TimeRange {
            start: Some(instant(1)),
            end: Some(instant(3)),
        },
    };
    let (mut listed, mut after) = (Vec::new(), None::<PageToken>);
    loop {
        let page = AuditLog::list(store, &tenant("acme"), &filter, 2, after.as_ref()).await;
        let page = page.expect("list");
        listed.extend(page.items);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let seconds: Vec<_> = listed.iter().map(|record| record.at).collect();
    assert_eq!(seconds, [2, 1, 1].map(instant));
    assert!(
        listed
            .iter()
            .all(|record| record.kind == AuditKind::Refused)
    );
}

/// Of all tenants.
pub async fn records_expire_and_others_stay(store: &impl AuditLog) {
    for name in ["acme", "globex"] {
        let records = [1, 2, 3].map(|second| record(name, AuditKind::Injected, second));
        store.append(&records).await.expect("append");
    }
    assert_eq!(store.expire(instant(3)).await, Ok(4));
    for name in ["acme", "globex"] {
        assert_eq!(audited(store, name).await.len(), 1, "{name}");
    }
}

/// Stored turns count, whoever's.
pub async fn quotas_and_usage_are_a_tenants_own(store: &(impl TenantCatalog + Ledger)) {
    let (acme, globex) = (tenant("acme"), tenant("globex"));
    assert_eq!(store.quota(&acme).await, Ok(Quota::default()));
    let quota = Quota {
        calls_per_minute: Some(7),
        turns: Some(1_000),
        spaces: Some(3),
    };
    for put in [Quota::default(), quota] {
        store.put_quota(&acme, &put, &[]).await.expect("put");
        assert_eq!(store.quota(&acme).await, Ok(put));
    }
    assert_eq!(store.quota(&globex).await, Ok(Quota::default()));
    for (space, text) in [("ada", "one"), ("bob", "drei ü")] {
        let here = scope("acme", space);
        let told = batch_in(&here, space, vec![turn_in(&here, "s", "t", text)]);
        store.commit(vec![indexed(told, 1)]).await.expect("commit");
    }
    let usage = store.usage(&acme).await.expect("usage");
    assert_eq!((usage.spaces, usage.turns, usage.bytes), (2, 2, 10));
    assert_eq!(store.stored_turns(&acme).await, Ok(2));
    assert_eq!(store.stored_turns(&globex).await, Ok(0));
    assert_eq!(store.spaces(&acme).await, Ok(2));
    assert_eq!(store.spaces(&globex).await, Ok(0));
    assert_eq!(
        store.usage(&globex).await,
        Ok(memfleet_domain::access::Usage::default())
    );
}

/// By name, page by page.
pub async fn tenants_are_those_with_a_key_a_quota_or_a_space(
    store: &(impl TenantCatalog + KeyRing + Ledger),
) {
    let (key, hash) = sample("keyed", "one", 1);
    add(store, &key, &hash).await;
    let quota = Quota::default();
    let bounded = tenant("bounded");
    let put = store.put_quota(&bounded, &quota, &[]);
    put.await.expect("put");
    let here = scope("writing", "ada");
    let told = batch_in(&here, "b", vec![turn_in(&here, "s", "t", "x")]);
    store.commit(vec![indexed(told, 1)]).await.expect("commit");
    let first = store.tenants(2, None).await.expect("tenants");
    assert_eq!(first.items, ["bounded", "keyed"].map(tenant));
    let second = store.tenants(2, first.next.as_ref()).await;
    let second = second.expect("tenants");
    assert_eq!((second.items, second.next), (vec![tenant("writing")], None));
}
