//! The layer around every call: id, span, admission, deadline, panic guard and measurement.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response};
use memfleet_trace::{REQUEST_ID, TRACEPARENT};
use metrics::counter;
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
use super::entrance::{Hold, Rooms, address};
use super::incoming::Peer;
use super::methods::{Method, Methods};
use super::refusals::{self, RefusalPace};
use super::stream::{Inbound, Outbound, Patience};
use crate::telemetry::names;

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
    rooms: Rooms,
    refusals: RefusalPace,
    stop: CancellationToken,
}

impl Shell {
    /// A shell with the limits of `options`; `stop` begins the drain of streams.
    pub(super) fn new(options: &Options, methods: Methods, stop: CancellationToken) -> Self {
        Self(Arc::new(Shared {
            options: options.clone(),
            methods,
            rooms: Rooms::new(options),
            refusals: RefusalPace::new(options.max_refusals_per_second),
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
        let peer = request.extensions().get::<Peer>().map(|peer| peer.0);
        let entrance = match shared.rooms.open(peer, &method) {
            Ok(entrance) => entrance,
            Err(refusal) => {
                let answer = refusal.into_http();
                return async move {
                    shared.hold_back(address(peer)).await;
                    Ok(finish(answer, meter, &id, None))
                }
                .instrument(span)
                .boxed();
            }
        };
        let due = allowance(request.headers(), method.streaming, &shared.options)
            .map(|time| Instant::now() + time);
        if let Some(due) = due {
            request.extensions_mut().insert(Deadline(due));
        }
        request.extensions_mut().insert(id.clone());
        request.extensions_mut().insert(entrance.clone());
        let hold = Hold(entrance);
        if let Ok(name) = HeaderValue::from_str(&id.0) {
            request.headers_mut().insert(REQUEST_ID, name);
        }
        let idle = method.streaming.then(|| shared.options.stream_idle.get());
        let patience = match idle {
            Some(idle) => Patience::Idle(idle),
            None => Patience::Whole(shared.options.request_timeout.get()),
        };
        request = request.map(|body| Body::new(Inbound::new(body, patience, hold.0.clone())));
        let handled = memfleet_trace::due_at(due, self.inner.call(request));
        let handled = AssertUnwindSafe(handled).catch_unwind();
        async move {
            let mut answer = tokio::select! {
                biased;
                answer = handled => answer.unwrap_or_else(|_| Ok(panicked().into_http()))?,
                status = shared.interruption(due, &method) => status.into_http(),
            };
            if refusals::is_refusal(answer.headers())
                && let Some(caller) = hold.take().map(|held| held.caller())
            {
                shared.hold_back(caller).await;
            }
            // The place of a single call is free again once its answer begins, that of a stream when it ends.
            if let Some(idle) = idle {
                answer = answer.map(|body| Body::new(Outbound::new(body, hold.take(), idle)));
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
    /// Waits until a refusal of this caller may go out.
    async fn hold_back(&self, caller: String) {
        if let Some(time) = self.refusals.next(caller) {
            counter!(names::REFUSALS_HELD).increment(1);
            tokio::time::sleep(time).await;
        }
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
