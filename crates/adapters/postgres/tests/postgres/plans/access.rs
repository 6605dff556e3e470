//! The same of keys, quotas and the audit log.

use memfleet_domain::access::{Grant, KeyHash, Quota};
use memfleet_domain::ids::{KeyId, TenantId};
use memfleet_ports::audit::{AuditFilter, AuditKind, AuditLog, AuditRecord};
use memfleet_ports::conformance::samples::instant;
use memfleet_ports::keys::{Key, KeyRing};
use memfleet_ports::tenants::TenantCatalog;
use memfleet_postgres::PostgresStore;

use super::OTHERS;

/// Records of the tenant that is asked about; ten times as many of all others.
const RECORDS: usize = 200;

fn tenant(number: usize) -> TenantId {
    TenantId::new(format!("tenant {number}")).expect("a short name")
}

fn key(number: usize) -> (Key, KeyHash) {
    let hash = KeyHash::of(&format!("secret {number}"));
    let key = Key {
        id: KeyId::of(&hash),
        tenant: tenant(number % OTHERS),
        label: String::new(),
        grant: Grant::ALL,
        is_operator: false,
        calls_per_minute: None,
        created_at: instant(number as i64),
        expires_at: None,
        last_used_at: None,
        revoked_at: None,
        replaced_by: None,
    };
    (key, hash)
}

fn record(tenant: TenantId, second: usize) -> AuditRecord {
    AuditRecord {
        at: instant(second as i64),
        tenant,
        kind: AuditKind::Injected,
        caller: "somebody".into(),
        request_id: "r-1".into(),
        space: None,
        key: None,
        turns: Vec::new(),
        detail: [].into(),
    }
}

pub async fn fill(store: &PostgresStore) {
    for number in 0..OTHERS * 2 {
        let (key, hash) = key(number);
        store.add(&key, &hash, &[]).await.expect("a new key");
    }
    for number in 0..OTHERS {
        let quota = Quota::default();
        let put = store.put_quota(&tenant(number), &quota, &[]).await;
        put.expect("a quota");
    }
    let own = (0..RECORDS).map(|second| record(tenant(0), second));
    let others = (0..RECORDS * 10).map(|second| record(tenant(second % OTHERS), second));
    let records: Vec<_> = own.chain(others).collect();
    AuditLog::append(store, &records).await.expect("records");
}

/// What is asked or told again and again.
pub const CALLS: [&str; 8] = [
    "find",
    "keys",
    "used",
    "quota",
    "stored_turns",
    "records",
    "append",
    "expire",
];

pub async fn call(store: &PostgresStore, name: &str, round: usize) {
    let (home, (key, hash)) = (tenant(0), key(0));
    match name {
        "find" => drop(store.find(&hash).await.expect(name).expect("a key")),
        "keys" => drop(KeyRing::list(store, &home, 10, None).await.expect(name)),
        "used" => {
            let uses = [(home, key.id, instant(round as i64))];
            store.used(&uses).await.expect(name);
        }
        "quota" => drop(store.quota(&home).await.expect(name)),
        "stored_turns" => drop(store.stored_turns(&home).await.expect(name)),
        "records" => {
            let filter = AuditFilter::default();
            let page = AuditLog::list(store, &home, &filter, 10, None).await;
            drop(page.expect(name));
        }
        "append" => {
            let records = [record(home, RECORDS + round)];
            AuditLog::append(store, &records).await.expect(name);
        }
        _ => drop(store.expire(instant(round as i64)).await.expect(name)),
    }
}
