//! Memory that is slow or away never holds up the model's call, unless the caller wants that.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use memfleet_domain::assembly::{Decision, FailurePolicy, GateMode, Reason};
use memfleet_domain::{Fault, FaultKind};
use memfleet_gateway::Gateway;
use memfleet_ports::assembly::Assembly;
use memfleet_ports::context::Context;
use memfleet_ports::retriever::{Found, Query, Retriever};

use super::{kettle, prompted, user};
use crate::roles::acme;

/// A retriever that takes its time, or fails.
#[derive(Default)]
struct Poor {
    delay: Duration,
    fails: bool,
    asked: AtomicU32,
}

#[async_trait]
impl Retriever for Poor {
    async fn search(&self, _: &Context, _: &Query) -> Result<Found, Fault> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(self.delay).await;
        if self.fails {
            return Err(Fault::new(FaultKind::Unavailable, "AWAY", "is away"));
        }
        Ok(Found::default())
    }
}

async fn with(poor: Poor) -> (Gateway, Arc<Poor>, crate::roles::Node) {
    let node = kettle().await;
    let poor = Arc::new(poor);
    let gateway = Gateway {
        retriever: poor.clone(),
        ..node.gateway.clone()
    };
    (gateway, poor, node)
}

#[tokio::test]
async fn amp_063_amp_123_a_slow_search_is_given_up_in_time_and_the_call_goes_on_without_memory() {
    let (gateway, _, _node) = with(Poor {
        delay: Duration::from_mins(10),
        ..Poor::default()
    })
    .await;
    let mut request = prompted(vec![user("What happened to my kettle?")]);
    request.policy.failure.policy = None;
    request.policy.failure.deadline_ms = Some(50);
    let answer = gateway.assemble(&acme(), request.clone()).await.unwrap();
    assert_eq!(answer.decision, Decision::Skipped);
    assert_eq!(answer.reason, Some(Reason::RetrievalUnavailable));
    assert!(answer.edits.is_empty());
    request.policy.failure.policy = Some(FailurePolicy::Closed);
    let fault = gateway.assemble(&acme(), request).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::DeadlineExceeded);
}

#[tokio::test]
async fn amp_063_a_failed_search_is_no_error_and_is_tried_again_by_the_next_request() {
    let (gateway, poor, _node) = with(Poor {
        fails: true,
        ..Poor::default()
    })
    .await;
    let mut request = prompted(vec![user("What happened to my kettle?")]);
    request.policy.failure.policy = None;
    request.query.session = Some(super::session("today"));
    for asked in 1..=2 {
        let answer = gateway.assemble(&acme(), request.clone()).await.unwrap();
        assert_eq!(answer.reason, Some(Reason::RetrievalUnavailable));
        assert_eq!(answer.degraded, ["memory: is away"]);
        assert_eq!(poor.asked.load(Ordering::SeqCst), asked);
    }
}

#[tokio::test]
async fn amp_052_never_asks_nothing_and_always_is_recorded() {
    let (gateway, poor, _node) = with(Poor::default()).await;
    let mut request = prompted(vec![user("What happened to my kettle?")]);
    request.policy.gating.mode = Some(GateMode::Never);
    let answer = gateway.assemble(&acme(), request.clone()).await.unwrap();
    assert_eq!(answer.reason, Some(Reason::GateNever));
    assert_eq!(answer.gates[0].reason, Reason::GateNever);
    assert_eq!(poor.asked.load(Ordering::SeqCst), 0);
    request.policy.gating.mode = Some(GateMode::Always);
    let answer = gateway.assemble(&acme(), request).await.unwrap();
    assert_eq!(answer.gates[0].reason, Reason::GateAlways);
    assert_eq!(answer.reason, Some(Reason::NothingFound));
}

#[tokio::test]
async fn amp_067_a_budget_of_nothing_asks_for_nothing() {
    let (gateway, poor, _node) = with(Poor::default()).await;
    let mut request = prompted(vec![user("What happened to my kettle?")]);
    request.policy.budget.max_tokens = Some(0);
    let answer = gateway.assemble(&acme(), request.clone()).await.unwrap();
    assert_eq!(answer.reason, Some(Reason::BudgetZero));
    request.policy.budget.max_tokens = None;
    request.model.window_tokens = Some(10);
    let answer = gateway.assemble(&acme(), request.clone()).await.unwrap();
    assert_eq!(answer.reason, Some(Reason::NoHeadroom));
    assert_eq!(poor.asked.load(Ordering::SeqCst), 0);
    request.model.window_tokens = None;
    request.policy.budget.percent_of_window = Some(5.0);
    let fault = gateway.assemble(&acme(), request).await.unwrap_err();
    assert_eq!(fault.fields[0].field, "policy.budget.percent_of_window");
}
