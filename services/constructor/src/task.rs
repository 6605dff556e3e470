//! A batch in hand, and the spans of the work on it.

use std::ops::Deref;

use memfleet_domain::Scope;
use memfleet_ports::queue::Delivery;
use memfleet_trace::{follow, within};
use tracing::Span;

/// A delivery, and what becomes of it in the trace of its caller.
#[derive(Debug, Clone)]
pub struct Task {
    delivery: Delivery,
    /// Log lines about this batch alone stand in it.
    pub span: Span,
}

impl Task {
    pub fn new(delivery: Delivery) -> Self {
        let Scope { tenant, space } = &delivery.batch.scope;
        let turns = delivery.batch.turns.len();
        let request_id = delivery.request_id.as_deref();
        let span =
            tracing::info_span!(parent: None, "construct", %tenant, %space, turns, request_id);
        if let Some(traceparent) = &delivery.traceparent {
            follow(&span, traceparent);
        }
        Self { delivery, span }
    }
}

impl Deref for Task {
    type Target = Delivery;

    fn deref(&self) -> &Delivery {
        &self.delivery
    }
}

/// The work on all of them: in a trace it is a part of the first, and the others refer to it.
pub fn round(tasks: &[Task]) -> Span {
    let turns: usize = tasks.iter().map(|task| task.batch.turns.len()).sum();
    let round = tracing::info_span!("ingest", batches = tasks.len(), turns);
    if let Some((first, others)) = tasks.split_first() {
        within(&round, &first.span);
        for other in others {
            other.span.follows_from(&round);
        }
    }
    round
}
