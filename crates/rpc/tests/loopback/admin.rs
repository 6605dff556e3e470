//! The service Admin: what it is asked arrives as it was meant, and what it answers comes back.

use std::time::Duration;

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_domain::access::{Grant, KeyHash, Quota, Right, Rights, SpacePattern, Usage};
use memfleet_domain::ids::{KeyId, SessionId, TenantId};
use memfleet_domain::time::TimeRange;
use memfleet_ports::admin::{
    Account, Admin, Issued, ModelChange, ModelChangeStatus, ModelUse, NewKey, Rotation,
};
use memfleet_ports::audit::{AuditFilter, AuditKind, AuditRecord, AuditedTurn};
use memfleet_ports::context::Context;
use memfleet_ports::keys::Key;
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::memory::PageRequest;
use memfleet_ports::model_switch::{
    OrderGiver, SpaceComparison, SwitchGoal, SwitchOrder, SwitchProgress,
};
use memfleet_ports::usage::Amount;

use crate::node::{Node, instant, space, turn_id};
use crate::{connected, context, tenant};

pub fn id() -> KeyId {
    KeyId::of(&KeyHash::of("k"))
}

fn key() -> Key {
    Key {
        id: id(),
        tenant: tenant("acme"),
        label: "backend".into(),
        grant: Grant {
            rights: Rights::from_iter([Right::Read, Right::Write]),
            spaces: vec![SpacePattern::new("support/*").unwrap()],
        },
        is_operator: false,
        calls_per_minute: Some(60),
        created_at: instant(),
        expires_at: Some(instant()),
        last_used_at: None,
        revoked_at: Some(instant()),
        replaced_by: Some(id()),
    }
}

fn issued() -> Issued {
    Issued {
        key: key(),
        secret: "memfleet-secret".into(),
    }
}

fn account(tenant: TenantId) -> Account {
    Account {
        tenant,
        usage: Usage {
            spaces: 1,
            turns: 2,
            bytes: 3,
            exchanges: 4,
            injections: 5,
        },
        quota: Quota {
            calls_per_minute: None,
            turns: Some(5),
            spaces: Some(6),
        },
        language_models: vec![ModelUse {
            day: instant().date_naive(),
            used: Amount {
                calls: 1,
                tokens: 2,
                micros: 3,
            },
        }],
    }
}

fn record(tenant: TenantId) -> AuditRecord {
    AuditRecord {
        at: instant(),
        tenant,
        kind: AuditKind::Injected,
        caller: "config".into(),
        request_id: "r".into(),
        space: Some(space("ada")),
        key: Some(id()),
        turns: vec![AuditedTurn {
            space: space("ada"),
            session: Some(SessionId::new("s").unwrap()),
            turn: turn_id(),
        }],
        detail: [("tokens".to_owned(), "7".to_owned())].into(),
    }
}

fn page<T>(item: T) -> Page<T> {
    Page {
        items: vec![item],
        next: Some(PageToken("next".into())),
    }
}

#[async_trait]
impl Admin for Node {
    async fn create_key(&self, context: &Context, key: NewKey) -> Result<Issued, Fault> {
        self.note(context, format!("{key:?}"));
        Ok(issued())
    }

    async fn keys(
        &self,
        context: &Context,
        tenant: Option<TenantId>,
        asked: PageRequest,
    ) -> Result<Page<Key>, Fault> {
        self.note(context, format!("{tenant:?} {asked:?}"));
        Ok(page(key()))
    }

    async fn revoke_key(
        &self,
        context: &Context,
        tenant: Option<TenantId>,
        id: KeyId,
    ) -> Result<Key, Fault> {
        self.note(context, format!("{tenant:?} {id}"));
        Ok(key())
    }

    async fn rotate_key(&self, context: &Context, rotation: Rotation) -> Result<Issued, Fault> {
        self.note(context, format!("{rotation:?}"));
        Ok(issued())
    }

    async fn tenants(
        &self,
        context: &Context,
        asked: PageRequest,
    ) -> Result<Page<TenantId>, Fault> {
        self.note(context, format!("{asked:?}"));
        Ok(page(tenant("acme")))
    }

    async fn account(
        &self,
        context: &Context,
        tenant: Option<TenantId>,
        time: TimeRange,
    ) -> Result<Account, Fault> {
        self.note(context, format!("{tenant:?} {time:?}"));
        Ok(account(tenant.unwrap_or_else(|| context.tenant.clone())))
    }

    async fn set_quota(
        &self,
        context: &Context,
        tenant: &TenantId,
        quota: Quota,
    ) -> Result<Account, Fault> {
        self.note(context, format!("{tenant:?} {quota:?}"));
        Ok(account(tenant.clone()))
    }

    async fn audit(
        &self,
        context: &Context,
        tenant: Option<TenantId>,
        filter: AuditFilter,
        asked: PageRequest,
    ) -> Result<Page<AuditRecord>, Fault> {
        self.note(context, format!("{tenant:?} {filter:?} {asked:?}"));
        Ok(page(record(context.tenant.clone())))
    }

    async fn switch_model(
        &self,
        context: &Context,
        change: Option<ModelChange>,
    ) -> Result<Option<ModelChangeStatus>, Fault> {
        self.note(context, format!("{change:?}"));
        Ok(change.map(|_| model_change()))
    }
}

fn model_change() -> ModelChangeStatus {
    ModelChangeStatus {
        order: SwitchOrder {
            target: memfleet_domain::embedding::EmbeddingSpace {
                model: "m".into(),
                revision: "r".into(),
                recipe: "c".into(),
                projection: "p".into(),
            },
            goal: SwitchGoal::RollBack,
            drops: true,
            forced: true,
            every_language: false,
            giver: OrderGiver::Operator,
        },
        progress: SwitchProgress {
            spaces: 1,
            building: 2,
            compared: 3,
            serving: 4,
            beside: 5,
            turns: 6,
            done: 7,
            comparison: SpaceComparison {
                queries: 8,
                overlap: 0.5,
                correlation: -0.25,
            },
        },
    }
}

#[tokio::test]
async fn a_change_of_the_model_travels_both_ways_as_it_is() {
    let (node, client) = connected().await;
    let changes = [
        ModelChange::Compare(Some("m".into())),
        ModelChange::Serve(None),
        ModelChange::RollBack,
        ModelChange::Drop,
    ];
    for change in changes {
        let status = client.switch_model(&context(), Some(change.clone())).await;
        assert_eq!(status, Ok(Some(model_change())));
        assert_eq!(node.last().1, format!("{:?}", Some(change)));
    }
    assert_eq!(client.switch_model(&context(), None).await, Ok(None));
}

#[tokio::test]
async fn keys_travel_both_ways_as_they_are() {
    let (node, client) = connected().await;
    let new = NewKey {
        tenant: Some(tenant("acme")),
        label: "backend".into(),
        grant: key().grant,
        is_operator: true,
        calls_per_minute: Some(60),
        expires_at: Some(instant()),
    };
    let answer = client.create_key(&context(), new.clone()).await.unwrap();
    assert_eq!(answer, issued());
    assert_eq!(node.last().1, format!("{new:?}"));
    let rotation = Rotation {
        tenant: None,
        id: id(),
        grace: Some(Duration::from_millis(1_500)),
    };
    let answer = client.rotate_key(&context(), rotation.clone()).await;
    assert_eq!(answer.unwrap(), issued());
    assert_eq!(node.last().1, format!("{rotation:?}"));
    let revoked = client
        .revoke_key(&context(), Some(tenant("acme")), id())
        .await;
    assert_eq!(revoked.unwrap(), key());
    let asked = PageRequest {
        limit: 7,
        after: Some(PageToken("here".into())),
    };
    let listed = client.keys(&context(), None, asked.clone()).await.unwrap();
    assert_eq!(listed, page(key()));
    assert_eq!(node.last().1, format!("None {asked:?}"));
}

#[tokio::test]
async fn tenants_quotas_and_records_travel_both_ways_as_they_are() {
    let (node, client) = connected().await;
    let asked = PageRequest::default;
    let tenants = client.tenants(&context(), asked()).await.unwrap();
    assert_eq!(tenants, page(tenant("acme")));
    let quota = Quota {
        calls_per_minute: Some(3),
        turns: None,
        spaces: Some(9),
    };
    let set = client.set_quota(&context(), &tenant("acme"), quota).await;
    assert_eq!(set.unwrap(), account(tenant("acme")));
    assert!(node.last().1.contains(&format!("{quota:?}")));
    let time = TimeRange {
        start: Some(instant()),
        end: None,
    };
    let own = client.account(&context(), None, time).await.unwrap();
    assert_eq!(own, account(tenant("default")));
    assert!(node.last().1.contains(&format!("{time:?}")));
    let filter = AuditFilter {
        kinds: vec![AuditKind::Injected, AuditKind::Refused],
        time: TimeRange {
            start: Some(instant()),
            end: None,
        },
    };
    let records = client
        .audit(&context(), None, filter.clone(), asked())
        .await;
    assert_eq!(records.unwrap(), page(record(tenant("default"))));
    assert!(node.last().1.contains(&format!("{filter:?}")));
}
