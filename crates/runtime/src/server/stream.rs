//! Bodies whose other side stands still: after a while they lose what they hold. HTTP/2's keep-alive finds peers that are gone,
//! this finds those that are there and do nothing. A stream that waits for us, such as a watch, lives on.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use tokio::time::{Instant, Sleep};
use tonic::body::Body;
use tonic::{Code, Status};

use super::answer::trailers;
use super::entrance::{Entrance, Held};
use super::layer::retryable;

/// Slowest pace at which the body of a single call may come in once its first seconds are over, in bytes a second.
const SLOWEST: u64 = 64 << 10;

/// How long a body is waited for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Patience {
    /// So long for each message of a stream.
    Idle(Duration),
    /// So long for the whole body of a single call, and a second more for each [`SLOWEST`] bytes that came in.
    Whole(Duration),
}

/// A body on its way in. It is an error when it is waited for beyond `patience`.
pub(super) struct Inbound {
    body: Body,
    patience: Patience,
    entrance: Entrance,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Inbound {
    pub(super) fn new(body: Body, patience: Patience, entrance: Entrance) -> Self {
        Self {
            body,
            patience,
            entrance,
            waiting: None,
        }
    }

    /// Moves the end of the waiting after something came in.
    fn arrived(&mut self, frame: Option<&Frame<Bytes>>) {
        match self.patience {
            Patience::Idle(_) => self.waiting = None,
            Patience::Whole(_) => {
                let bytes = frame.and_then(Frame::data_ref).map_or(0, Bytes::len);
                let more = Duration::from_secs(1).mul_f64(bytes as f64 / SLOWEST as f64);
                if let Some(waiting) = &mut self.waiting {
                    let due = waiting.deadline() + more;
                    waiting.as_mut().reset(due);
                }
            }
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
            let arrived = frame.as_ref().and_then(|frame| frame.as_ref().ok());
            this.arrived(arrived);
            let bytes = arrived.and_then(Frame::data_ref).map_or(0, Bytes::len);
            return Poll::Ready(match this.entrance.weigh(bytes) {
                Ok(()) => frame.map(|frame| frame.map_err(|_| cut_off())),
                Err(refusal) => Some(Err(refusal)),
            });
        }
        this.entrance.unload();
        let (Patience::Idle(time) | Patience::Whole(time)) = this.patience;
        let waiting = this
            .waiting
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(time)));
        ready!(waiting.as_mut().poll(context));
        Poll::Ready(Some(Err(match this.patience {
            Patience::Idle(idle) => stalled(idle, "sent"),
            Patience::Whole(time) => late(time),
        })))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

/// The end of a request that its caller, or the connection, broke off: no fault of the server.
fn cut_off() -> Status {
    Status::cancelled("the call ended before all of its request had arrived")
}

/// Messages on their way out, with the stream's place among the others. Both are dropped when the peer takes nothing for `idle`:
/// the transport does not even ask for the next message then, so a task of its own looks.
pub(super) struct Outbound {
    state: Arc<Mutex<State>>,
    idle: Duration,
}

struct State {
    held: Option<(Body, Option<Held>)>,
    /// Since when the peer has what we gave it; none while it waits for us.
    given: Option<Instant>,
    told: bool,
}

impl Outbound {
    pub(super) fn new(body: Body, place: Option<Held>, idle: Duration) -> Self {
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

fn late(time: Duration) -> Status {
    let message = format!(
        "the request did not arrive within {time:?} (`server.request_timeout`); send it again, at once"
    );
    retryable(Code::DeadlineExceeded, "REQUEST_STALLED", &message)
}
