//! Keys, quotas and usage, by those who may.

use std::sync::Arc;
use std::time::Duration;

use chrono::Days;
use futures::StreamExt;
use memfleet_domain::access::{Grant, Quota, Right, Rights, SpacePattern};
use memfleet_domain::ids::{ExternalId, KeyId, SpaceId, TenantId};
use memfleet_domain::space::SpaceSettings;
use memfleet_domain::time::TimeRange;
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::access::{Authority, Caller};
use memfleet_ports::admin::{Admin, Issued, NewKey, Rotation};
use memfleet_ports::audit::AuditFilter;
use memfleet_ports::conformance::samples::instant;
use memfleet_ports::context::Context;
use memfleet_ports::memory::{Memory, PageRequest, Record};
use memfleet_ports::usage::{Amount, Limits, Reservation, UsageLedger};

use crate::roles::{Node, call_of, keyed, request, said};

pub fn tenant(name: &str) -> TenantId {
    TenantId::new(name).unwrap()
}

pub fn new_key() -> NewKey {
    NewKey {
        tenant: None,
        label: "backend".into(),
        grant: Grant::ALL,
        is_operator: false,
        calls_per_minute: None,
        expires_at: None,
    }
}

/// A call of a caller who was identified.
pub fn call_by(caller: Caller) -> Context {
    let mut context = call_of(caller.tenant.as_str(), Duration::from_mins(1));
    context.caller = Some(Arc::new(caller));
    context
}

async fn identified(node: &Node, secret: Option<&str>) -> Result<Context, Fault> {
    node.gateway.access.identify(secret).await.map(call_by)
}

/// A node with an operator's key, and a call of the operator.
pub async fn with_operator() -> (Node, Issued, Context) {
    let node = Node::new().await;
    let open = identified(&node, None).await.unwrap();
    let new = NewKey {
        is_operator: true,
        ..new_key()
    };
    let issued = node.gateway.create_key(&open, new).await.unwrap();
    let operator = identified(&node, Some(&issued.secret)).await.unwrap();
    (node, issued, operator)
}

/// A tenant's administrator.
pub async fn administrator(node: &Node, operator: &Context, name: &str) -> Context {
    let new = NewKey {
        tenant: Some(tenant(name)),
        ..new_key()
    };
    let issued = node.gateway.create_key(operator, new).await.unwrap();
    identified(node, Some(&issued.secret)).await.unwrap()
}

fn reason<T: std::fmt::Debug>(answer: Result<T, Fault>) -> String {
    answer.unwrap_err().reason.into_owned()
}

#[tokio::test]
async fn the_first_key_is_an_operators_and_closes_the_node() {
    let node = Node::new().await;
    let open = identified(&node, None).await.unwrap();
    let refused = node.gateway.create_key(&open, new_key()).await;
    assert_eq!(reason(refused), "FIRST_KEY_NOT_OPERATOR");
    let first = NewKey {
        is_operator: true,
        ..new_key()
    };
    node.gateway.create_key(&open, first).await.unwrap();
    assert_eq!(reason(identified(&node, None).await), "CREDENTIAL_MISSING");
}

#[tokio::test]
async fn a_key_works_from_the_answer_on_until_it_is_revoked() {
    let (node, _, operator) = with_operator().await;
    let gateway = &node.gateway;
    let issued = gateway.create_key(&operator, new_key()).await.unwrap();
    assert_eq!(issued.secret.len(), "memfleet-".len() + 64);
    assert!(!format!("{issued:?}").contains(&issued.secret));
    let caller = gateway.access.identify(Some(&issued.secret)).await.unwrap();
    assert_eq!(caller.name, issued.key.id.to_string());
    let revoked = gateway.revoke_key(&operator, None, issued.key.id).await;
    assert!(revoked.unwrap().revoked_at.is_some());
    let refused = gateway.access.identify(Some(&issued.secret)).await;
    assert_eq!(reason(refused), "CREDENTIAL_REVOKED");
    let nobody = KeyId::from_bytes([0; 16]);
    let missing = gateway.revoke_key(&operator, None, nobody).await;
    assert_eq!(missing.unwrap_err().kind, FaultKind::NotFound);
}

#[tokio::test]
async fn a_rotated_key_goes_on_for_its_grace_and_the_next_lasts_as_long_again() {
    let (node, _, operator) = with_operator().await;
    let gateway = &node.gateway;
    let lasting = NewKey {
        expires_at: Some(instant(1_000)),
        ..new_key()
    };
    let old = gateway.create_key(&operator, lasting).await.unwrap();
    node.clock.set(100);
    let rotation = Rotation {
        tenant: None,
        id: old.key.id,
        grace: Some(Duration::from_secs(50)),
    };
    let next = gateway
        .rotate_key(&operator, rotation.clone())
        .await
        .unwrap();
    let expected = instant(1_100);
    assert_eq!(next.key.expires_at, Some(expected));
    assert_eq!(next.key.grant, old.key.grant);
    node.clock.set(149);
    for secret in [&old.secret, &next.secret] {
        assert!(gateway.access.identify(Some(secret)).await.is_ok());
    }
    node.clock.set(150);
    let refused = gateway.access.identify(Some(&old.secret)).await;
    assert_eq!(reason(refused), "CREDENTIAL_EXPIRED");
    assert!(gateway.access.identify(Some(&next.secret)).await.is_ok());
    let again = gateway.rotate_key(&operator, rotation).await;
    assert_eq!(reason(again), "KEY_NOT_ROTATABLE");
}

#[tokio::test]
async fn an_administrator_manages_its_own_tenant_and_no_other() {
    let (node, first, operator) = with_operator().await;
    let gateway = &node.gateway;
    let acme = administrator(&node, &operator, "acme").await;
    let globex = administrator(&node, &operator, "globex").await;
    let theirs = gateway.create_key(&globex, new_key()).await.unwrap().key;
    let own = gateway.keys(&acme, None, PageRequest::default()).await;
    assert!(
        own.unwrap()
            .items
            .iter()
            .all(|key| key.tenant == acme.tenant)
    );
    // Their id in one's own tenant is nobody's.
    let rotation = |tenant| Rotation {
        tenant,
        id: theirs.id,
        grace: None,
    };
    let answers = [
        gateway.revoke_key(&acme, None, theirs.id).await.err(),
        gateway.rotate_key(&acme, rotation(None)).await.err(),
    ];
    for fault in answers.map(Option::unwrap) {
        assert_eq!(fault.kind, FaultKind::NotFound, "{fault}");
    }
    let there = || Some(tenant("globex"));
    let page = PageRequest::default;
    let key = NewKey {
        tenant: there(),
        ..new_key()
    };
    let operators = NewKey {
        is_operator: true,
        ..new_key()
    };
    let default = administrator(&node, &operator, "default").await;
    let first = first.key.id;
    let answers = [
        gateway.create_key(&acme, key).await.err(),
        gateway.keys(&acme, there(), page()).await.err(),
        gateway.revoke_key(&acme, there(), theirs.id).await.err(),
        gateway.rotate_key(&acme, rotation(there())).await.err(),
        gateway.tenants(&acme, page()).await.err(),
        gateway
            .account(&acme, there(), TimeRange::default())
            .await
            .err(),
        gateway
            .set_quota(&acme, &acme.tenant, Quota::default())
            .await
            .err(),
        gateway
            .audit(&acme, there(), AuditFilter::default(), page())
            .await
            .err(),
        // An operator's key lies in the tenant `default`, and is not its administrators'.
        gateway.create_key(&default, operators).await.err(),
        gateway.revoke_key(&default, None, first).await.err(),
        gateway
            .rotate_key(
                &default,
                Rotation {
                    tenant: None,
                    id: first,
                    grace: None,
                },
            )
            .await
            .err(),
    ];
    for (number, fault) in answers.into_iter().enumerate() {
        let fault = fault.unwrap_or_else(|| panic!("{number} was allowed"));
        assert_eq!(fault.reason, "RIGHT_OPERATOR_MISSING", "{number}: {fault}");
    }
    let tenants = gateway.tenants(&operator, page()).await.unwrap().items;
    assert_eq!(tenants, ["acme", "default", "globex"].map(tenant));
}

#[tokio::test]
async fn keys_that_make_no_sense_are_refused_with_the_field() {
    let (node, _, operator) = with_operator().await;
    let narrow = NewKey {
        grant: Grant {
            rights: Rights::ALL,
            spaces: vec![SpacePattern::new("ada").unwrap()],
        },
        ..new_key()
    };
    let weak = NewKey {
        grant: Grant {
            rights: Rights::from_iter([Right::Read]),
            spaces: Vec::new(),
        },
        is_operator: true,
        ..new_key()
    };
    let elsewhere = NewKey {
        tenant: Some(tenant("acme")),
        is_operator: true,
        ..new_key()
    };
    let past = NewKey {
        expires_at: Some(instant(0)),
        ..new_key()
    };
    for (new, field) in [
        (narrow, "spaces"),
        (weak, "operator"),
        (elsewhere, "operator"),
        (past, "expires_at"),
    ] {
        let fault = node.gateway.create_key(&operator, new).await.unwrap_err();
        assert_eq!(fault.fields[0].field, field);
    }
}

#[tokio::test]
async fn turns_beyond_a_quota_are_refused_and_retries_of_the_others_are_not() {
    let (node, _, operator) = with_operator().await;
    let gateway = &node.gateway;
    let acme = administrator(&node, &operator, "acme").await;
    let quota = Quota {
        calls_per_minute: None,
        turns: Some(3),
        spaces: None,
    };
    let set = gateway
        .set_quota(&operator, &acme.tenant, quota)
        .await
        .unwrap();
    assert_eq!(set.quota, quota);
    let two = || keyed("ada", "k", vec![said("one"), said("two")]);
    gateway.remember(&acme, two()).await.unwrap();
    let beyond = request("ada", vec![said("three"), said("four")]);
    let fault = gateway.remember(&acme, beyond).await.unwrap_err();
    assert_eq!(
        (fault.kind, fault.reason.as_ref()),
        (FaultKind::ResourceExhausted, "STORAGE_QUOTA")
    );
    assert_eq!(fault.fields[0].field, "turns");
    assert_eq!(fault.retry_after, None);
    node.settle().await;
    assert!(gateway.remember(&acme, two()).await.unwrap().duplicate);
    gateway
        .remember(&acme, request("ada", vec![said("three")]))
        .await
        .unwrap();
    node.settle().await;
    // The count of when the quota was set is used for fifty times as long as it took.
    let counted = async {
        loop {
            let account = gateway.account(&acme, None, TimeRange::default()).await;
            let usage = account.unwrap().usage;
            if (usage.turns, usage.spaces) == (3, 1) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_mins(1), counted).await;
    in_time.expect("three turns in one space");
}

#[tokio::test]
async fn another_space_than_a_tenant_may_have_is_refused_and_those_it_has_go_on() {
    let (node, _, operator) = with_operator().await;
    let gateway = &node.gateway;
    let acme = administrator(&node, &operator, "acme").await;
    let quota = Quota {
        spaces: Some(1),
        ..Quota::default()
    };
    let set = gateway.set_quota(&operator, &acme.tenant, quota).await;
    assert_eq!(set.unwrap().quota, quota);
    let remember =
        |space: &str, text: &str| gateway.remember(&acme, request(space, vec![said(text)]));
    remember("ada", "one").await.unwrap();
    // One that waits in the queue counts.
    let fault = remember("bob", "two").await.unwrap_err();
    assert_eq!(fault.reason, "STORAGE_QUOTA");
    remember("ada", "one more").await.unwrap();
    node.settle().await;
    let fault = remember("bob", "two").await.unwrap_err();
    assert_eq!(
        (fault.kind, fault.reason.as_ref()),
        (FaultKind::ResourceExhausted, "STORAGE_QUOTA")
    );
    assert_eq!(fault.fields[0].field, "space");
    let other = SpaceId::new("eve").unwrap();
    let put = gateway.put_space(&acme, &other, SpaceSettings::default());
    assert_eq!(put.await.unwrap_err().reason, "STORAGE_QUOTA");
    let record = Record::Space(SpaceId::new("file").unwrap(), SpaceSettings::default());
    let records = futures::stream::iter([Ok(record)]).boxed();
    let imported = gateway.import(&acme, &other, records).await;
    assert_eq!(imported.unwrap_err().reason, "STORAGE_QUOTA");
    remember("ada", "three").await.unwrap();
}

#[tokio::test]
async fn an_id_of_a_captured_message_is_not_for_callers() {
    let (node, _, operator) = with_operator().await;
    let acme = administrator(&node, &operator, "acme").await;
    let mut turns = vec![said("one"), said("two")];
    turns[1].external_id = Some(ExternalId::new("captured-of mine").unwrap());
    let fault = node.gateway.remember(&acme, request("ada", turns)).await;
    let fault = fault.unwrap_err();
    assert_eq!(fault.kind, FaultKind::InvalidArgument);
    assert_eq!(fault.fields[0].field, "turns[1].external_id");
}

#[tokio::test]
async fn usage_tells_what_language_models_cost_day_by_day() {
    let (node, _, operator) = with_operator().await;
    let acme = administrator(&node, &operator, "acme").await;
    let today = instant(0).date_naive();
    let used = Amount {
        calls: 1,
        tokens: 120,
        micros: 7,
    };
    for ago in [400, 29, 1, 0] {
        let day = today - Days::new(ago);
        let reserved = node
            .store
            .reserve(&tenant("acme"), day, used, &Limits::default())
            .await;
        assert_eq!(reserved, Ok(Reservation::Made));
    }
    let days = async |start: Option<u64>, end: Option<u64>| {
        let at = |ago| instant(0) - Days::new(ago);
        let time = TimeRange {
            start: start.map(at),
            end: end.map(at),
        };
        let account = node.gateway.account(&acme, None, time).await?;
        let days = account.language_models.into_iter().map(|of| {
            assert_eq!(of.used, used);
            (today - of.day).num_days()
        });
        Ok::<_, Fault>(days.collect::<Vec<_>>())
    };
    assert_eq!(days(None, None).await, Ok(vec![29, 1, 0]));
    assert_eq!(days(Some(1), None).await, Ok(vec![1, 0]));
    assert_eq!(days(None, Some(399)).await, Ok(vec![400]));
    let fault = days(Some(400), None).await.unwrap_err();
    assert_eq!(
        (fault.kind, fault.fields[0].field.as_str()),
        (FaultKind::InvalidArgument, "time")
    );
    let other = administrator(&node, &operator, "globex").await;
    let account = node
        .gateway
        .account(&other, None, TimeRange::default())
        .await;
    assert_eq!(account.unwrap().language_models, []);
}
