//! Identity of a piece of work, as it travels from process to process in the metadata of calls
//! and the headers of messages: the request by its id, and the trace by its W3C `traceparent` where
//! traces are exported. Within a process: its deadline.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod deadline;
mod request;

use std::collections::HashMap;

use opentelemetry::Context;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::TraceContextExt;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

pub use deadline::{due_at, remaining};
pub use request::{REQUEST_ID, RequestIds, request_id};

/// Name of the metadata and of the header.
pub const TRACEPARENT: &str = "traceparent";

/// What goes along with a call or message that the current span sends, by name.
pub fn travelling() -> impl Iterator<Item = (&'static str, String)> {
    let circumstances = [(TRACEPARENT, current()), (REQUEST_ID, request_id())];
    let present = |(name, value): (_, Option<String>)| Some((name, value?));
    circumstances.into_iter().filter_map(present)
}

/// The current span as others refer to it; absent where no trace is recorded.
pub fn current() -> Option<String> {
    let mut carrier = HashMap::new();
    TraceContextPropagator::new().inject_context(&Span::current().context(), &mut carrier);
    carrier.remove(TRACEPARENT)
}

/// The trace that this thread works in, in 32 hexadecimal digits; absent where no trace is recorded.
pub fn trace_id() -> Option<String> {
    Context::map_current(|context| {
        let span = context.span();
        let about = span.span_context();
        about.is_valid().then(|| about.trace_id().to_string())
    })
}

/// Makes `span` part of `whole` in its trace. It stays apart from it in logs.
pub fn within(span: &Span, whole: &Span) {
    // Refused where no traces are exported.
    let _unheard = span.set_parent(whole.context());
}

/// Makes `span` part of the trace that `traceparent` names. One that is malformed begins no trace and is no error: it comes from
/// a caller who cannot be told.
pub fn follow(span: &Span, traceparent: &str) {
    let carrier = HashMap::from([(TRACEPARENT.to_owned(), traceparent.to_owned())]);
    let context = TraceContextPropagator::new().extract(&carrier);
    // Refused where no traces are exported.
    let _unheard = span.set_parent(context);
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::TracerProvider;
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    const CALLERS: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn exporting<T>(work: impl FnOnce() -> T) -> T {
        let provider = SdkTracerProvider::builder().build();
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, work)
    }

    #[test]
    fn a_span_that_follows_a_caller_is_of_its_trace() {
        exporting(|| {
            let span = tracing::info_span!("call");
            follow(&span, CALLERS);
            let told = span.in_scope(current).unwrap();
            assert_eq!(told[..35], CALLERS[..35], "the same trace");
            assert_ne!(told, CALLERS, "another span of it");
        });
    }

    #[test]
    fn a_span_within_another_is_of_its_trace() {
        exporting(|| {
            let whole = tracing::info_span!("construct");
            follow(&whole, CALLERS);
            let span = tracing::info_span!("ingest");
            within(&span, &whole);
            let told = span.in_scope(trace_id);
            assert_eq!(told.unwrap(), CALLERS[3..35]);
            assert_eq!(trace_id(), None, "outside of it there is none");
        });
    }

    #[test]
    fn what_is_malformed_begins_a_trace_of_its_own() {
        exporting(|| {
            let span = tracing::info_span!("call");
            follow(&span, "not a traceparent");
            assert!(span.in_scope(current).is_some());
        });
    }

    #[test]
    fn without_an_exporter_nothing_travels() {
        let span = tracing::info_span!("call");
        follow(&span, CALLERS);
        assert_eq!(span.in_scope(current), None);
    }
}
