//! Models that did not take tools, for an hour (AMP item 25). Each gateway learns it for itself, and of each credential apart: what one says of a
//! model does not take the tools from another. What is not known costs one refused request.

use chrono::TimeDelta;
use memfleet_domain::ids::TenantId;
use memfleet_domain::time::Timestamp;
use memfleet_ports::context::Context;
use quick_cache::sync::Cache;

/// How long a model counts as one that takes no tools.
const REMEMBERED: TimeDelta = TimeDelta::hours(1);

/// Models remembered at most, of all credentials together; those that are asked for least give way.
const CAPACITY: usize = 10_000;

/// A model by tenant, by the name of who calls, and by its own.
type Model = (TenantId, String, String);

/// Until when each model is remembered.
#[derive(Debug)]
pub struct ToolRejections(Cache<Model, Timestamp>);

impl Default for ToolRejections {
    fn default() -> Self {
        Self(Cache::new(CAPACITY))
    }
}

impl ToolRejections {
    /// Remembers that a model takes no tools.
    pub(crate) fn note(&self, context: &Context, model: &str, now: Timestamp) {
        self.0.insert(key(context, model), now + REMEMBERED);
    }

    /// Whether it is known to take none.
    pub(crate) fn rejects(&self, context: &Context, model: &str, now: Timestamp) -> bool {
        let until = self.0.get(&key(context, model));
        until.is_some_and(|until| until > now)
    }
}

fn key(context: &Context, model: &str) -> Model {
    (
        context.tenant.clone(),
        context.caller_name().to_owned(),
        model.to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use memfleet_ports::access::default_tenant;

    use super::*;

    #[test]
    fn rejections_are_forgotten_after_an_hour_and_never_more_than_the_capacity() {
        let rejections = ToolRejections::default();
        let context = Context::new(default_tenant(), Duration::from_secs(1));
        let now = Timestamp::UNIX_EPOCH;
        rejections.note(&context, "small", now);
        assert!(rejections.rejects(&context, "small", now + TimeDelta::minutes(59)));
        assert!(!rejections.rejects(&context, "small", now + REMEMBERED));
        assert!(!rejections.rejects(&context, "large", now));
        for number in 0..3 * CAPACITY {
            rejections.note(&context, &number.to_string(), now);
        }
        assert!(rejections.0.len() <= CAPACITY);
    }
}
