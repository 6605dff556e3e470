//! One call to a role: signed, bounded in time, and tried at another replica where it may be repeated.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use memfleet_domain::ids::TenantId;
use memfleet_domain::{Fault, FaultKind};
use tokio::time::{Instant, timeout_at};
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

use super::credential::{Credential, name_tenant};
use super::peers::Replica;
use crate::status;

/// Whether a call may be made twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    /// It changes nothing, or the same once more.
    Freely,
    /// It may have been carried out though no answer came.
    Never,
}

/// What is the same for every try of a call.
pub(super) struct Terms<'a> {
    /// Who asks.
    pub credential: &'a Credential,
    /// Whose memory it is about; nobody's for the embedder.
    pub tenant: Option<&'a TenantId>,
    /// When an answer is due.
    pub deadline: Instant,
    /// Whether it may be made twice.
    pub repeat: Repeat,
}

impl Terms<'_> {
    fn request<Q>(&self, message: Q, allowed: Duration) -> Request<Q> {
        let mut request = Request::new(message);
        self.credential.sign(&mut request);
        if let Some(tenant) = self.tenant {
            name_tenant(&mut request, tenant);
        }
        trace(&mut request);
        request.set_timeout(allowed);
        request
    }
}

/// The answer of the first replica that gives one before the deadline. A replica that may be followed by another gets half of the
/// time that is left, so that one that hangs does not use up all of it.
pub(super) async fn call<Q: Clone, A>(
    replicas: Vec<Arc<Replica>>,
    terms: Terms<'_>,
    message: Q,
    send: impl Fn(Channel, Request<Q>) -> BoxFuture<'static, Result<Response<A>, Status>>,
) -> Result<A, Fault> {
    let attempts = match terms.repeat {
        Repeat::Freely => replicas.len().min(3),
        Repeat::Never => 1,
    };
    let mut outcome = Err(Fault::deadline("a role's answer"));
    for (left, replica) in (0..attempts).rev().zip(&replicas) {
        let now = Instant::now();
        let remaining = terms.deadline.saturating_duration_since(now);
        let allowed = if left == 0 { remaining } else { remaining / 2 };
        let request = terms.request(message.clone(), allowed);
        outcome = attempt(replica, now + allowed, request, &send).await;
        match &outcome {
            Err(fault) if left > 0 && is_elsewhere_better(fault) => {
                tracing::debug!(address = %replica.address(), %fault, "another replica is asked");
            }
            _ => break,
        }
    }
    outcome
}

/// Makes what the role does part of the trace of whoever asks, under the same request id.
fn trace<Q>(request: &mut Request<Q>) {
    for (name, value) in memfleet_trace::travelling() {
        if let Ok(value) = value.parse() {
            request.metadata_mut().insert(name, value);
        }
    }
}

async fn attempt<Q, A>(
    replica: &Arc<Replica>,
    deadline: Instant,
    request: Request<Q>,
    send: &impl Fn(Channel, Request<Q>) -> BoxFuture<'static, Result<Response<A>, Status>>,
) -> Result<A, Fault> {
    let counted = replica.begin();
    let answer = match timeout_at(deadline, send(counted.channel(), request)).await {
        Ok(answer) => answer.map_err(|status| status::to_fault(&status)),
        Err(_) => Err(Fault::deadline("a role's answer")),
    };
    if matches!(&answer, Err(fault) if fault.reason == "CONNECTION_FAILED") {
        replica.failed();
    }
    answer.map(Response::into_inner)
}

/// Faults of one replica that another need not have: it is gone, stopping, silent or full, or lacks
/// the reader of turns, of an earlier version or without its model.
fn is_elsewhere_better(fault: &Fault) -> bool {
    let of_one = [
        "OVERLOADED",
        "READER_OVERLOADED",
        "READER_MISSING",
        "UNIMPLEMENTED",
    ];
    matches!(
        fault.kind,
        FaultKind::Unavailable | FaultKind::DeadlineExceeded
    ) || of_one.contains(&&*fault.reason)
}

/// When a call is due that nobody gave a deadline.
pub(super) fn within(budget: Duration) -> Instant {
    Instant::now() + budget
}
