//! Models that did not take tools, per tenant, for an hour (AMP item 25). Each gateway learns it for itself: what it does not know costs one
//! refused request.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use chrono::TimeDelta;
use memfleet_domain::ids::TenantId;
use memfleet_domain::time::Timestamp;
use memfleet_provider::rejection::Rejections;

/// How long a model counts as one that takes no tools.
const REMEMBERED: TimeDelta = TimeDelta::hours(1);

/// What is remembered, by tenant.
#[derive(Debug, Default)]
pub struct ToolRejections(Mutex<HashMap<TenantId, Rejections>>);

impl ToolRejections {
    /// Remembers that a model takes no tools.
    pub(crate) fn note(&self, tenant: &TenantId, model: &str, now: Timestamp) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.entry(tenant.clone()).or_default();
        known.note(model, now, REMEMBERED);
    }

    /// Whether it is known to take none.
    pub(crate) fn rejects(&self, tenant: &TenantId, model: &str, now: Timestamp) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(tenant)
            .is_some_and(|known| known.rejects(model, now))
    }
}
