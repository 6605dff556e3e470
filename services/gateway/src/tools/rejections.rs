//! Models that did not take tools, for an hour (AMP item 25). Each gateway learns it for itself, and of each credential apart: what one says of a
//! model does not take the tools from another. What is not known costs one refused request.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use chrono::TimeDelta;
use memfleet_domain::ids::TenantId;
use memfleet_domain::time::Timestamp;
use memfleet_ports::context::Context;
use memfleet_provider::rejection::Rejections;

/// How long a model counts as one that takes no tools.
const REMEMBERED: TimeDelta = TimeDelta::hours(1);

/// What is remembered, by tenant and by the name of who calls.
#[derive(Debug, Default)]
pub struct ToolRejections(Mutex<HashMap<(TenantId, String), Rejections>>);

impl ToolRejections {
    /// Remembers that a model takes no tools.
    pub(crate) fn note(&self, context: &Context, model: &str, now: Timestamp) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.entry(key(context)).or_default();
        known.note(model, now, REMEMBERED);
    }

    /// Whether it is known to take none.
    pub(crate) fn rejects(&self, context: &Context, model: &str, now: Timestamp) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&key(context))
            .is_some_and(|known| known.rejects(model, now))
    }
}

fn key(context: &Context) -> (TenantId, String) {
    (context.tenant.clone(), context.caller_name().to_owned())
}
