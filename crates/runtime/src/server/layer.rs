//! The layer around every call: id, span, admission, deadline, panic guard and measurement.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response};
use memfleet_trace::{REQUEST_ID, TRACEPARENT};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};
use tower::{Layer, Service};
use tracing::Instrument;

use super::Options;
use super::answer::{Answer, Meter};
use super::call::{Deadline, RequestId, allowance};
use super::methods::{Method, Methods};
use super::stream::{Inbound, Outbound};

/// Domain of the `google.rpc.ErrorInfo` that the shell's own refusals carry.
pub(super) const ERROR_DOMAIN: &str = "memfleet";

/// When a refused caller may try again.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// Wraps the routes of a server.
#[derive(Debug, Clone)]
pub(super) struct Shell(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    options: Options,
    methods: Methods,
    calls: Places,
    streams: Places,
    stop: CancellationToken,
}

/// How many of a kind are worked on at once.
#[derive(Debug)]
struct Places {
    free: Arc<Semaphore>,
    limit: usize,
    kind: &'static str,
}

impl Places {
    fn new(limit: usize, kind: &'static str) -> Self {
        Self {
            free: Arc::new(Semaphore::new(limit)),
            limit,
            kind,
        }
    }

    fn take(&self) -> Result<OwnedSemaphorePermit, Status> {
        let place = self.free.clone().try_acquire_owned();
        place.map_err(|_| {
            let Self { limit, kind, .. } = self;
            let message =
                format!("the server is working on {limit} {kind} already; try again shortly");
            retryable(Code::ResourceExhausted, "OVERLOADED", &message)
        })
    }
}

impl Shell {
    /// A shell with the limits of `options`; `stop` begins the drain of streams.
    pub(super) fn new(options: &Options, methods: Methods, stop: CancellationToken) -> Self {
        Self(Arc::new(Shared {
            options: options.clone(),
            methods,
            calls: Places::new(options.max_concurrent_calls, "calls"),
            streams: Places::new(options.max_concurrent_streams, "streams"),
            stop,
        }))
    }
}

impl<S> Layer<S> for Shell {
    type Service = Shelled<S>;

    fn layer(&self, inner: S) -> Shelled<S> {
        Shelled {
            inner,
            shared: self.0.clone(),
        }
    }
}

/// A service inside a [`Shell`].
#[derive(Debug, Clone)]
pub(super) struct Shelled<S> {
    inner: S,
    shared: Arc<Shared>,
}

impl<S> Service<Request<Body>> for Shelled<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let shared = self.shared.clone();
        let method = shared.methods.at(request.uri().path()).clone();
        let id = RequestId::of(request.headers());
        let span = tracing::info_span!("call", method = &*method.name, request_id = &*id.0);
        let parent = request.headers().get(TRACEPARENT);
        if let Some(parent) = parent.and_then(|parent| parent.to_str().ok()) {
            memfleet_trace::follow(&span, parent);
        }
        let meter = Meter::begin(method.name.clone(), span.clone());
        let place = match shared.admit(request.uri().path(), &method) {
            Ok(place) => place,
            Err(refusal) => {
                let answer = finish(refusal.into_http(), meter, &id, None);
                return async move { Ok(answer) }.boxed();
            }
        };
        let due = allowance(request.headers(), method.streaming, &shared.options)
            .map(|time| Instant::now() + time);
        if let Some(due) = due {
            request.extensions_mut().insert(Deadline(due));
        }
        request.extensions_mut().insert(id.clone());
        if let Ok(name) = HeaderValue::from_str(&id.0) {
            request.headers_mut().insert(REQUEST_ID, name);
        }
        let idle = method.streaming.then(|| shared.options.stream_idle.get());
        if let Some(idle) = idle {
            request = request.map(|body| Body::new(Inbound::new(body, idle)));
        }
        let handled = memfleet_trace::due_at(due, self.inner.call(request));
        let handled = AssertUnwindSafe(handled).catch_unwind();
        async move {
            let mut answer = tokio::select! {
                biased;
                answer = handled => answer.unwrap_or_else(|_| Ok(panicked().into_http()))?,
                status = shared.interruption(due, &method) => status.into_http(),
            };
            // The place of a single call is free again once its answer begins, that of a stream when it ends.
            if let Some(idle) = idle {
                answer = answer.map(|body| Body::new(Outbound::new(body, place, idle)));
            }
            let cut = method
                .streaming
                .then(|| async move { shared.interruption(due, &method).await }.boxed());
            Ok(finish(answer, meter, &id, cut))
        }
        .instrument(span)
        .boxed()
    }
}

impl Shared {
    /// A place among the concurrent calls, or among the streams. Probes need none: they must answer under load.
    fn admit(&self, path: &str, method: &Method) -> Result<Option<OwnedSemaphorePermit>, Status> {
        if path.starts_with("/grpc.") {
            return Ok(None);
        }
        let places = if method.streaming {
            &self.streams
        } else {
            &self.calls
        };
        places.take().map(Some)
    }

    /// Resolves when the call must end before it is done: its deadline passed, or the server has been stopping for as long as a call,
    /// or a stream, may go on then.
    async fn interruption(&self, due: Option<Instant>, method: &Method) -> Status {
        let deadline = async {
            match due {
                Some(due) => tokio::time::sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        let stopping = async {
            let drain = match method.streaming {
                true => self.options.stream_drain,
                false => self.options.call_drain,
            };
            self.stop.cancelled().await;
            tokio::time::sleep(drain.get()).await;
        };
        tokio::select! {
            () = deadline => {
                let details = ErrorDetails::with_error_info("DEADLINE_EXCEEDED", ERROR_DOMAIN, []);
                Status::with_error_details(Code::DeadlineExceeded, "the deadline passed before the answer was ready", details)
            }
            () = stopping => retryable(Code::Unavailable, "STOPPING", "the server is stopping; connect again"),
        }
    }
}

pub(super) fn retryable(code: Code, reason: &str, message: &str) -> Status {
    let mut details = ErrorDetails::with_error_info(reason, ERROR_DOMAIN, []);
    details.set_retry_info(Some(RETRY_DELAY));
    Status::with_error_details(code, message, details)
}

fn panicked() -> Status {
    let details = ErrorDetails::with_error_info("INTERNAL", ERROR_DOMAIN, []);
    let message =
        "the server failed on this call; its log has the cause under the answer's x-request-id";
    Status::with_error_details(Code::Internal, message, details)
}

fn finish(
    mut answer: Response<Body>,
    mut meter: Meter,
    id: &RequestId,
    cut: Option<BoxFuture<'static, Status>>,
) -> Response<Body> {
    if let Ok(id) = HeaderValue::from_str(&id.0) {
        answer.headers_mut().insert(REQUEST_ID, id);
    }
    meter.see(answer.headers());
    answer.map(|body| Body::new(Answer::new(body, meter, cut)))
}

#[cfg(test)]
mod tests;
