//! A store that hangs: the answer comes in its time all the same, and what entered the prompt is written down when the store is back.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use memfleet_domain::FaultKind;
use memfleet_domain::assembly::{Decision, FailurePolicy, Reason};
use memfleet_domain::ids::{ExchangeName, SessionId, SpaceId, TenantId};
use memfleet_domain::time::Timestamp;
use memfleet_gateway::Gateway;
use memfleet_ports::assembly::{AssembleRequest, Assembly};
use memfleet_ports::conversations::{Conversation, Sought};
use memfleet_ports::exchanges::{Entry, Exchanges, Kept, Secret, Written};
use memfleet_ports::injections::InjectionFilter;
use memfleet_ports::store::Result;
use memfleet_sqlite::SqliteStore;
use tokio::sync::{RwLock, RwLockWriteGuard};
use tokio::time::{Instant, sleep};

use super::{kettle, prompted, session, user};
use crate::roles::{Node, acme};

/// When answers are due: long enough for a busy machine.
const DUE: Duration = Duration::from_secs(2);

/// Exchanges that can be held up.
struct Sluggish {
    store: Arc<SqliteStore>,
    reads: RwLock<()>,
    writes: RwLock<()>,
}

#[async_trait]
impl Exchanges for Sluggish {
    async fn get(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        name: &ExchangeName,
        now: Timestamp,
    ) -> Result<Option<Kept>> {
        let _open = self.reads.read().await;
        Exchanges::get(&*self.store, tenant, session, name, now).await
    }

    async fn keep(&self, tenant: &TenantId, entry: Entry<'_>) -> Result<Written> {
        let _open = self.writes.read().await;
        Exchanges::keep(&*self.store, tenant, entry).await
    }

    async fn secret(&self, tenant: &TenantId, space: Option<&SpaceId>) -> Result<Secret> {
        self.store.secret(tenant, space).await
    }

    async fn states(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<String>> {
        self.store.states(tenant, session, limit, now).await
    }

    async fn session_tokens(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        now: Timestamp,
    ) -> Result<u64> {
        self.store.session_tokens(tenant, session, now).await
    }

    async fn conversations(
        &self,
        tenant: &TenantId,
        sought: &Sought,
        now: Timestamp,
    ) -> Result<Vec<Conversation>> {
        self.store.conversations(tenant, sought, now).await
    }

    async fn bound(&self, tenant: &TenantId, most: u32) -> Result<u64> {
        Exchanges::bound(&*self.store, tenant, most).await
    }

    async fn expire(&self, now: Timestamp) -> Result<u64> {
        Exchanges::expire(&*self.store, now).await
    }
}

async fn sluggish() -> (Node, Gateway, Arc<Sluggish>) {
    let node = kettle().await;
    let exchanges = Arc::new(Sluggish {
        store: node.store.clone(),
        reads: RwLock::default(),
        writes: RwLock::default(),
    });
    let gateway = Gateway {
        exchanges: exchanges.clone(),
        ..node.gateway.clone()
    };
    (node, gateway, exchanges)
}

fn asking() -> AssembleRequest {
    let mut request = prompted(vec![user("What happened to my kettle?")]);
    request.query.session = Some(session("today"));
    request.policy.failure.policy = None;
    request.policy.failure.deadline_ms = Some(DUE.as_millis() as u32);
    request
}

async fn records(node: &Node) -> usize {
    let (tenant, all) = (acme().tenant, InjectionFilter::default());
    let page = node.gateway.injections.list(&tenant, &all, 10, None).await;
    page.unwrap().items.len()
}

/// Lets what waits go on, and waits until so many are written down.
async fn written(node: &Node, held: RwLockWriteGuard<'_, ()>, count: usize) {
    drop(held);
    let began = Instant::now();
    while records(node).await < count {
        assert!(began.elapsed() < 10 * DUE, "nothing is written down");
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn amp_123_a_store_that_hangs_costs_the_memory_and_no_more_than_its_time() {
    let (_node, gateway, exchanges) = sluggish().await;
    let _held = exchanges.reads.write().await;
    let began = Instant::now();
    let answer = gateway.assemble(&acme(), asking()).await.unwrap();
    assert!(began.elapsed() < DUE + DUE / 2, "{:?}", began.elapsed());
    assert_eq!(answer.decision, Decision::Skipped);
    assert_eq!(answer.reason, Some(Reason::RetrievalUnavailable));
    let mut closed = asking();
    closed.policy.failure.policy = Some(FailurePolicy::Closed);
    let fault = gateway.assemble(&acme(), closed).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::DeadlineExceeded);
}

#[tokio::test]
async fn amp_094_amp_123_an_answer_does_not_wait_for_its_record_and_the_record_is_written_later() {
    let (node, gateway, exchanges) = sluggish().await;
    let held = exchanges.writes.write().await;
    let began = Instant::now();
    let answer = gateway.assemble(&acme(), asking()).await.unwrap();
    assert!(began.elapsed() < DUE + DUE / 2, "{:?}", began.elapsed());
    assert!(answer.block.contains("kettle broke"), "{answer:?}");
    assert_eq!(answer.degraded, ["audit: is still being written"]);
    assert_eq!(records(&node).await, 0);
    written(&node, held, 1).await;
    let (tenant, id) = (acme().tenant, answer.injection.unwrap());
    let kept = node.gateway.injections.get(&tenant, id).await.unwrap();
    let block = kept.unwrap().block;
    assert_eq!(block.as_deref(), Some(answer.block.as_str()));
}

#[tokio::test]
async fn amp_094_what_enters_a_prompt_is_written_down_though_the_caller_hangs_up() {
    let (node, gateway, exchanges) = sluggish().await;
    let held = exchanges.writes.write().await;
    let call = acme();
    let mut request = asking();
    request.policy.failure.deadline_ms = Some(60_000);
    let hung_up = tokio::time::timeout(DUE, gateway.assemble(&call, request)).await;
    assert!(hung_up.is_err());
    written(&node, held, 1).await;
}

#[tokio::test]
async fn amp_006_amp_094_of_requests_at_the_same_time_one_answer_counts_and_is_the_only_record() {
    let (node, gateway, exchanges) = sluggish().await;
    let held = exchanges.writes.write().await;
    let call = acme();
    let release = async {
        // All have come as far as the write by then.
        sleep(DUE).await;
        drop(held);
    };
    let mut request = asking();
    request.policy.failure.deadline_ms = Some(60_000);
    let requests = (0..4).map(|_| gateway.assemble(&call, request.clone()));
    let (answers, ()) = tokio::join!(futures::future::join_all(requests), release);
    let answers: Vec<_> = answers.into_iter().map(|it| it.unwrap()).collect();
    assert!(answers[0].block.contains("kettle broke"));
    for answer in &answers {
        assert_eq!(
            (&answer.block, answer.injection),
            (&answers[0].block, answers[0].injection)
        );
        assert_eq!(answer.edits, answers[0].edits);
    }
    assert_eq!(records(&node).await, 1);
}
