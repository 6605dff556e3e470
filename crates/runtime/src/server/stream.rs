//! Streams whose other side stands still: after a while they lose what they hold. HTTP/2's keep-alive finds peers that are gone,
//! this finds those that are there and do nothing. A stream that waits for us, such as a watch, lives on.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep};
use tonic::body::Body;
use tonic::{Code, Status};

use super::answer::trailers;
use super::layer::retryable;

/// Messages on their way in. It is an error when somebody waits for the next one for longer than `idle`.
pub(super) struct Inbound {
    body: Body,
    idle: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Inbound {
    pub(super) fn new(body: Body, idle: Duration) -> Self {
        Self {
            body,
            idle,
            waiting: None,
        }
    }
}

impl http_body::Body for Inbound {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            this.waiting = None;
            return Poll::Ready(frame);
        }
        let idle = this.idle;
        let waiting = this
            .waiting
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(idle)));
        ready!(waiting.as_mut().poll(context));
        Poll::Ready(Some(Err(stalled(idle, "sent"))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

/// Messages on their way out, with the stream's place among the others. Both are dropped when the peer takes nothing for `idle`:
/// the transport does not even ask for the next message then, so a task of its own looks.
pub(super) struct Outbound {
    state: Arc<Mutex<State>>,
    idle: Duration,
}

struct State {
    held: Option<(Body, Option<OwnedSemaphorePermit>)>,
    /// Since when the peer has what we gave it; none while it waits for us.
    given: Option<Instant>,
    told: bool,
}

impl Outbound {
    pub(super) fn new(body: Body, place: Option<OwnedSemaphorePermit>, idle: Duration) -> Self {
        let state = Arc::new(Mutex::new(State {
            held: Some((body, place)),
            given: Some(Instant::now()),
            told: false,
        }));
        tokio::spawn(watch(Arc::downgrade(&state), idle));
        Self { state, idle }
    }
}

/// Lets go of a stream that nobody reads; ends with the stream.
async fn watch(stream: Weak<Mutex<State>>, idle: Duration) {
    while let Some(next) = stream
        .upgrade()
        .and_then(|state| lock(&state).next_look(idle))
    {
        tokio::time::sleep_until(next).await;
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// When to look again; none once everything is let go of.
    fn next_look(&mut self, idle: Duration) -> Option<Instant> {
        let due = self.given.unwrap_or_else(Instant::now) + idle;
        if due <= Instant::now() {
            self.held = None;
        }
        self.held.is_some().then_some(due)
    }
}

impl http_body::Body for Outbound {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let mut state = lock(&self.state);
        state.given = None;
        let Some((body, _)) = &mut state.held else {
            let first = !std::mem::replace(&mut state.told, true);
            let refusal = || Ok(Frame::trailers(trailers(&stalled(self.idle, "taken"))));
            return Poll::Ready(first.then(refusal));
        };
        let frame = ready!(Pin::new(body).poll_frame(context));
        state.given = Some(Instant::now());
        Poll::Ready(frame)
    }

    /// A refusal is all headers: some clients take it for broken off unless its end comes with them.
    fn is_end_stream(&self) -> bool {
        let state = lock(&self.state);
        match &state.held {
            Some((body, _)) => body.is_end_stream(),
            None => state.told,
        }
    }
}

fn stalled(idle: Duration, what: &str) -> Status {
    let message =
        format!("nothing was {what} for {idle:?} (`server.stream_idle`); open a new stream");
    retryable(Code::DeadlineExceeded, "STREAM_IDLE", &message)
}
