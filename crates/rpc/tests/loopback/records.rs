//! The services Policies and Audit: what they are asked arrives as it was meant, and what they answer comes back.

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_domain::ids::{InjectionId, SessionId, SettingName, SpaceId};
use memfleet_domain::policy::{Policy, Settings};
use memfleet_ports::context::Context;
use memfleet_ports::injections::InjectionFilter;
use memfleet_ports::injections_api::{Audit, PastInjection};
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::memory::PageRequest;
use memfleet_ports::policies::{Listing, NewDocument, Policies, PolicyInForce, policy_key};
use memfleet_ports::settings::{Setting, SettingKey, SettingKind};

use crate::node::{Node, assembled, instant, page, space, turn_id};
use crate::{connected, context};

fn id() -> InjectionId {
    InjectionId::from_bytes([3; 16])
}

fn injection() -> PastInjection {
    PastInjection {
        id: id(),
        at: instant(),
        caller: "config".into(),
        request_id: "r".into(),
        session: Some(SessionId::new("s").unwrap()),
        exchange: None,
        spaces: vec![space("ada")],
        answer: assembled(),
        block: Some("Ada: hi".into()),
        block_hash: Some([0xa7; 32]),
        forgotten: false,
    }
}

fn small() -> Policy {
    let mut policy = Policy::default();
    policy.budget.max_tokens = Some(0);
    policy.format.redactions = Some(vec!["sk-[a-z]+".into()]);
    policy
}

fn in_force() -> PolicyInForce {
    PolicyInForce {
        in_force: small().over(Settings::default().into()),
        of_node: Policy::default(),
        of_tenant: small(),
        tenant_version: 3,
        of_space: Policy::default(),
        space_version: 0,
    }
}

fn document(body: Option<&str>) -> Setting {
    Setting {
        key: policy_key(Some(space("ada"))),
        version: 2,
        body: body.map(Into::into),
        by: "config".into(),
        at: instant(),
    }
}

#[async_trait]
impl Policies for Node {
    async fn put_policy(
        &self,
        context: &Context,
        space: Option<SpaceId>,
        policy: Policy,
        expected: Option<u32>,
    ) -> Result<u32, Fault> {
        self.note(context, format!("{space:?} {policy:?} {expected:?}"));
        Ok(4)
    }

    async fn policy(
        &self,
        context: &Context,
        space: Option<SpaceId>,
    ) -> Result<PolicyInForce, Fault> {
        self.note(context, format!("{space:?}"));
        Ok(in_force())
    }

    async fn put_document(&self, context: &Context, document: NewDocument) -> Result<u32, Fault> {
        self.note(context, format!("{document:?}"));
        Ok(5)
    }

    async fn documents(
        &self,
        context: &Context,
        listing: Listing,
        asked: PageRequest,
    ) -> Result<Page<Setting>, Fault> {
        self.note(context, format!("{listing:?} {asked:?}"));
        Ok(page(document(None)))
    }

    async fn remove_document(
        &self,
        context: &Context,
        key: SettingKey,
        expected: Option<u32>,
    ) -> Result<u32, Fault> {
        self.note(context, format!("{key:?} {expected:?}"));
        Ok(6)
    }
}

#[async_trait]
impl Audit for Node {
    async fn injection(&self, context: &Context, id: InjectionId) -> Result<PastInjection, Fault> {
        self.note(context, id.to_string());
        Ok(injection())
    }

    async fn injections(
        &self,
        context: &Context,
        filter: InjectionFilter,
        asked: PageRequest,
    ) -> Result<Page<PastInjection>, Fault> {
        self.note(context, format!("{filter:?} {asked:?}"));
        Ok(page(injection()))
    }
}

#[tokio::test]
async fn policies_arrive_and_come_back() {
    let context = &context();
    let (node, client) = connected().await;
    let place = Some(space("ada"));
    let put = client.put_policy(context, place.clone(), small(), Some(0));
    assert_eq!(put.await.unwrap(), 4);
    let asked = format!("{place:?} {:?} {:?}", small(), Some(0));
    assert_eq!(node.last().1, asked);
    let policy = client.policy(context, place).await.unwrap();
    assert_eq!(policy, in_force());
}

#[tokio::test]
async fn documents_arrive_and_come_back() {
    let context = &context();
    let (node, client) = connected().await;
    let new = NewDocument {
        kind: SettingKind::Template,
        name: SettingName::new("ours").unwrap(),
        body: "id = \"ours\"".into(),
        expected: None,
    };
    let put = client.put_document(context, new.clone()).await;
    assert_eq!((put.unwrap(), node.last().1), (5, format!("{new:?}")));
    let asked = PageRequest {
        limit: 7,
        after: Some(PageToken("here".into())),
    };
    let key = document(None).key;
    for listing in [
        Listing::Present(None),
        Listing::Present(Some(SettingKind::Exemplars)),
        Listing::History(key.clone()),
    ] {
        let documents = client.documents(context, listing.clone(), asked.clone());
        assert_eq!(documents.await.unwrap(), page(document(None)));
        assert_eq!(node.last().1, format!("{listing:?} {asked:?}"));
    }
    let removed = client.remove_document(context, key.clone(), Some(2));
    assert_eq!(removed.await.unwrap(), 6);
    assert_eq!(node.last().1, format!("{key:?} {:?}", Some(2)));
}

#[tokio::test]
async fn what_cannot_be_a_document_is_refused_at_its_field() {
    let context = &context();
    let (node, client) = connected().await;
    let new = NewDocument {
        kind: SettingKind::Template,
        name: SettingName::new("ours").unwrap(),
        body: " ".into(),
        expected: None,
    };
    let blank = client.put_document(context, new.clone()).await;
    assert_eq!(blank.unwrap_err().fields[0].field, "body");
    let body = "x".repeat((256 << 10) + 1);
    let long = client
        .put_document(context, NewDocument { body, ..new })
        .await;
    assert_eq!(long.unwrap_err().fields[0].field, "body");
    let mut policy = small();
    policy.tools.rounds = Some(99);
    let wrong = client.put_policy(context, None, policy, None).await;
    assert_eq!(wrong.unwrap_err().fields[0].field, "policy.tools.rounds");
    assert!(node.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn injections_come_back_and_a_turn_needs_its_space() {
    let context = &context();
    let (node, client) = connected().await;
    let one = Audit::injection(&client, context, id()).await.unwrap();
    assert_eq!((one, node.last().1), (injection(), id().to_string()));
    let filter = InjectionFilter {
        space: Some(space("ada")),
        turn: Some((space("ada"), turn_id())),
        ..InjectionFilter::default()
    };
    let asked = PageRequest::default();
    let listed = client.injections(context, filter.clone(), asked.clone());
    assert_eq!(listed.await.unwrap(), page(injection()));
    assert_eq!(node.last().1, format!("{filter:?} {asked:?}"));
}
