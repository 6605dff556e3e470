//! The body of an answer, watched to its end: a call's code and duration are known only there.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::HeaderMap;
use http_body::{Body, Frame};
use metrics::{Gauge, counter, gauge, histogram};
use tokio::time::Instant;
use tonic::{Code, Status};
use tracing::Span;

use crate::telemetry::names;

/// Measures one call. Reports when it is told the code; a call dropped before that was cancelled by its caller.
pub(super) struct Meter {
    method: Arc<str>,
    begun: Instant,
    in_flight: Gauge,
    span: Span,
    code: Option<Code>,
}

impl Meter {
    /// Begins to measure a call of `method`.
    pub(super) fn begin(method: Arc<str>, span: Span) -> Self {
        let in_flight = gauge!(names::GRPC_IN_FLIGHT, "method" => method.clone());
        in_flight.increment(1);
        Self {
            method,
            begun: Instant::now(),
            in_flight,
            span,
            code: None,
        }
    }

    /// Notes the code if these headers or trailers hold one.
    pub(super) fn see(&mut self, headers: &HeaderMap) {
        if let Some(code) = headers.get("grpc-status") {
            self.code = Some(Code::from_bytes(code.as_bytes()));
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        let code = self.code.unwrap_or(Code::Cancelled);
        let elapsed = self.begun.elapsed();
        self.in_flight.decrement(1);
        counter!(names::GRPC_CALLS, "method" => self.method.clone(), "code" => name(code))
            .increment(1);
        histogram!(names::GRPC_SECONDS, "method" => self.method.clone()).record(elapsed);
        let milliseconds = elapsed.as_secs_f64() * 1e3;
        self.span.in_scope(|| match code {
            Code::Internal | Code::Unknown | Code::DataLoss => {
                tracing::warn!(code = name(code), milliseconds, "call failed");
            }
            _ => tracing::debug!(code = name(code), milliseconds, "call ended"),
        });
    }
}

/// An answer's body with its [`Meter`]. A stream is also cut when `cut` resolves, with the status it gives.
pub(super) struct Answer {
    body: tonic::body::Body,
    meter: Option<Meter>,
    cut: Option<BoxFuture<'static, Status>>,
}

impl Answer {
    /// Watches `body`.
    pub(super) fn new(
        body: tonic::body::Body,
        meter: Meter,
        cut: Option<BoxFuture<'static, Status>>,
    ) -> Self {
        Self {
            body,
            meter: Some(meter),
            cut,
        }
    }

    fn end(&mut self, trailers: &HeaderMap) {
        if let Some(mut meter) = self.meter.take() {
            meter.see(trailers);
        }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        let Some(meter) = &this.meter else {
            return Poll::Ready(None);
        };
        // What a stream does between its messages belongs to its call.
        let span = meter.span.clone();
        let _entered = span.enter();
        if let Some(Poll::Ready(status)) = this.cut.as_mut().map(|cut| cut.as_mut().poll(context)) {
            let trailers = trailers(&status);
            this.end(&trailers);
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        let frame = ready!(Pin::new(&mut this.body).poll_frame(context));
        match &frame {
            Some(Ok(frame)) => frame
                .trailers_ref()
                .into_iter()
                .for_each(|trailers| this.end(trailers)),
            Some(Err(status)) => {
                let trailers = trailers(status);
                this.end(&trailers);
            }
            // Headers carried the code.
            None => drop(this.meter.take()),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.meter.is_none() || self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        if self.cut.is_some() {
            http_body::SizeHint::default()
        } else {
            self.body.size_hint()
        }
    }
}

/// The end of an answer that this status is.
pub(super) fn trailers(status: &Status) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    // Fails only for messages that no header can hold, and then the code is there already.
    let _ = status.add_header(&mut trailers);
    trailers
}

/// The canonical name of a code, as dashboards and documents write it.
fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
