//! The request that a piece of work is done for: the `request_id` of the nearest span that has one.

use std::fmt::Debug;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Span, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::{LookupSpan, Registry};

/// Name of the metadata and of the header.
pub const REQUEST_ID: &str = "x-request-id";

/// Name of the spans' field.
const FIELD: &str = "request_id";

/// Keeps the ids of spans, where [`request_id`] finds them.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestIds;

#[derive(Default)]
struct Named(Option<String>);

impl Visit for Named {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == FIELD {
            self.0 = Some(value.to_owned());
        }
    }

    fn record_debug(&mut self, _field: &Field, _value: &dyn Debug) {}
}

impl<S> Layer<S> for RequestIds
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut named = Named::default();
        attributes.record(&mut named);
        if let (Some(_), Some(span)) = (&named.0, context.span(id)) {
            span.extensions_mut().insert(named);
        }
    }
}

/// The id of the request that the current span is part of; absent where it is none's, and where no [`RequestIds`] keep it.
pub fn request_id() -> Option<String> {
    let found = Span::current().with_subscriber(|(id, subscriber)| {
        let span = subscriber.downcast_ref::<Registry>()?.span(id)?;
        let mut spans = span.scope();
        spans.find_map(|span| span.extensions().get::<Named>()?.0.clone())
    });
    found.flatten()
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[test]
    fn work_inside_a_call_is_done_for_its_request() {
        let subscriber = tracing_subscriber::registry().with(RequestIds);
        tracing::subscriber::with_default(subscriber, || {
            let call = tracing::info_span!("call", method = "Recall", request_id = "r-7");
            let recall = tracing::info_span!(parent: &call, "recall", k = 10);
            assert_eq!(recall.in_scope(request_id).as_deref(), Some("r-7"));
            let retention = tracing::info_span!("retention");
            assert_eq!(retention.in_scope(request_id), None);
        });
    }
}
