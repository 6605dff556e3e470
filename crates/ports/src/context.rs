//! What every call carries: whose data, until when, and the id that ties logs together.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use memfleet_domain::Fault;
use memfleet_domain::Scope;
use memfleet_domain::ids::{SpaceId, TenantId};
use tokio::time::Instant;

use crate::access::Caller;

/// The circumstances of one call. Deadlines travel with it and only shrink.
#[derive(Debug, Clone)]
pub struct Context {
    /// From the credential only.
    pub tenant: TenantId,
    /// When the caller stops waiting.
    pub deadline: Instant,
    /// Who calls; absent for work that nobody asked for, and between roles.
    pub caller: Option<Arc<Caller>>,
    /// What the call is named in logs; may be empty.
    pub request_id: Arc<str>,
    /// How what it computes stands to other calls. It holds within the process.
    pub priority: CallPriority,
}

/// Rank of a call among those that compute at the same time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallPriority {
    /// Beside other calls.
    #[default]
    Normal,
    /// Behind them: its tenant asks for more than its share of the processors.
    Low,
}

impl Context {
    /// A call of `tenant` that may take `budget` from now.
    pub fn new(tenant: TenantId, budget: Duration) -> Self {
        Self {
            tenant,
            deadline: Instant::now() + budget,
            caller: None,
            request_id: Arc::default(),
            priority: CallPriority::default(),
        }
    }

    /// Who calls, as logs and records name it; empty for work that nobody asked for.
    pub fn caller_name(&self) -> &str {
        self.caller.as_ref().map_or("", |caller| &caller.name)
    }

    /// A space of the caller's tenant.
    pub fn scope(&self, space: &SpaceId) -> Scope {
        Scope {
            tenant: self.tenant.clone(),
            space: space.clone(),
        }
    }

    /// Copy of the call with another priority.
    #[must_use]
    pub fn with_priority(&self, priority: CallPriority) -> Self {
        Self {
            priority,
            ..self.clone()
        }
    }

    /// The same call with no more than this left.
    #[must_use]
    pub fn at_most(&self, left: Duration) -> Self {
        Self {
            deadline: self.deadline.min(Instant::now() + left),
            ..self.clone()
        }
    }

    /// Waits for `work` until the deadline; `what` names it in the fault.
    pub async fn within<T>(
        &self,
        what: &str,
        work: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        tokio::time::timeout_at(self.deadline, work)
            .await
            .unwrap_or_else(|_| Err(Fault::deadline(what)))
    }
}
