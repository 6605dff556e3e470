//! Connections as they come in: a limited number in all and of each address, each with a few seconds to say something, encrypted
//! where the server has certificates.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::{Stream, StreamExt};
use memfleet_tls::Acceptor;
use metrics::{counter, gauge};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep};
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use super::Options;
use super::entrance::address;
use super::places::{Full, Place, Places};
use crate::telemetry::names;

/// Bytes that begin each HTTP/2 connection (RFC 9113, 3.4).
const PREFACE: usize = 24;

/// Pause after the first connection that could not be accepted; twice as long after each further one …
const PAUSE: Duration = Duration::from_millis(10);
/// … and this long at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How often a matter of connections is logged at most.
const LOGGED: Duration = Duration::from_secs(10);

/// Address at the other end of a connection, in the extensions of its requests.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) IpAddr);

/// The connections that this listener takes, in the clear.
pub(super) fn plain(
    listener: TcpListener,
    options: &Options,
) -> impl Stream<Item = io::Result<Connection<TcpStream>>> + use<> {
    let time = options.handshake_timeout.get();
    accepted(Door::new(listener, options))
        .map(move |taken| Ok(Connection::new(taken.stream, taken.peer, taken.place, time)))
}

/// The connections that this listener takes and whose callers agreed on encryption. Handshakes go on side by side: one that is slow
/// delays no other.
pub(super) fn encrypted(
    listener: TcpListener,
    options: &Options,
    acceptor: Acceptor,
) -> impl Stream<Item = io::Result<Connection<TlsStream<TcpStream>>>> + use<> {
    let time = options.handshake_timeout.get();
    accepted(Door::new(listener, options))
        .map(move |taken| {
            let acceptor = acceptor.clone();
            async move {
                let agreed = acceptor.accept(taken.stream, time).await?;
                Some(Ok(Connection::new(agreed, taken.peer, taken.place, time)))
            }
        })
        // Each holds a place, so that there are no more.
        .buffer_unordered(options.max_connections)
        .filter_map(std::future::ready)
}

fn accepted(door: Door) -> impl Stream<Item = Taken> {
    futures::stream::unfold(door, |mut door| async {
        let taken = door.next().await;
        Some((taken, door))
    })
}

/// A connection that has a place.
struct Taken {
    stream: TcpStream,
    peer: IpAddr,
    place: Held,
}

/// Place of a connection, counted while it is held.
struct Held {
    _place: Place,
}

impl Held {
    fn new(place: Place) -> Self {
        gauge!(names::CONNECTIONS).increment(1);
        Self { _place: place }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        gauge!(names::CONNECTIONS).decrement(1);
    }
}

/// Takes connections of a listener while there are places for them, and closes others.
struct Door {
    listener: TcpListener,
    places: Places,
    pause: Duration,
    failures: Seldom,
    refusals: Seldom,
}

impl Door {
    fn new(listener: TcpListener, options: &Options) -> Self {
        Self {
            listener,
            places: Places::of_each(options.max_connections, options.max_connections_per_address),
            pause: PAUSE,
            failures: Seldom::default(),
            refusals: Seldom::default(),
        }
    }

    async fn next(&mut self) -> Taken {
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    self.pause = PAUSE;
                    match self.places.take(&address(Some(peer.ip())), None) {
                        Ok(place) => {
                            // Only latency is at stake.
                            let _ = stream.set_nodelay(true);
                            return Taken {
                                stream,
                                peer: peer.ip(),
                                place: Held::new(place),
                            };
                        }
                        Err(full) => self.refuse(peer.ip(), full),
                    }
                }
                Err(error) if is_of_the_connection(&error) => {}
                Err(error) => self.failed(&error).await,
            }
        }
    }

    fn refuse(&mut self, peer: IpAddr, full: Full) {
        let reason = match full {
            Full::All => "full",
            Full::Owner | Full::Member => "address",
        };
        counter!(names::CONNECTIONS_REFUSED, "reason" => reason).increment(1);
        if let Some(others) = self.refusals.times() {
            tracing::warn!(
                address = %peer, reason, others,
                "a connection was closed: there are as many as `server.max_connections` and `server.max_connections_per_address` leave its address"
            );
        }
    }

    /// Most often there is no file descriptor left, and trying again at once would keep a core busy.
    async fn failed(&mut self, error: &io::Error) {
        counter!(names::ACCEPT_ERRORS).increment(1);
        if let Some(others) = self.failures.times() {
            tracing::error!(
                %error, others,
                "connections cannot be accepted: lower `server.max_connections`, or raise the limit of open files (`ulimit -n`)"
            );
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}

/// Whether it is the matter of one connection, which its caller gave up: the next may do.
fn is_of_the_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}

/// Counter of something that is logged once in [`LOGGED`].
#[derive(Debug, Default)]
struct Seldom {
    logged_at: Option<Instant>,
    since: u64,
}

impl Seldom {
    /// Notes that it happened; where it is to be logged, how often it happened unlogged.
    fn times(&mut self) -> Option<u64> {
        if self.logged_at.is_some_and(|at| at.elapsed() < LOGGED) {
            self.since += 1;
            return None;
        }
        self.logged_at = Some(Instant::now());
        Some(std::mem::take(&mut self.since))
    }
}

/// A connection that is closed where its caller does not begin to speak HTTP/2 in time. One that falls silent later is found by
/// HTTP/2's keep-alive.
pub(super) struct Connection<S> {
    io: S,
    peer: IpAddr,
    greeting: Option<Greeting>,
    _place: Held,
}

/// First bytes that have not come yet.
struct Greeting {
    missing: usize,
    due: Pin<Box<Sleep>>,
}

impl<S> Connection<S> {
    fn new(io: S, peer: IpAddr, place: Held, time: Duration) -> Self {
        Self {
            io,
            peer,
            greeting: Some(Greeting {
                missing: PREFACE,
                due: Box::pin(tokio::time::sleep(time)),
            }),
            _place: place,
        }
    }
}

impl<S> Connected for Connection<S> {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        Peer(self.peer)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Connection<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.io).poll_read(context, buffer);
        let Some(greeting) = &mut this.greeting else {
            return read;
        };
        greeting.missing = greeting
            .missing
            .saturating_sub(buffer.filled().len() - before);
        if greeting.missing == 0 {
            this.greeting = None;
            return read;
        }
        if read.is_ready() {
            return read;
        }
        ready!(greeting.due.as_mut().poll(context));
        counter!(names::CONNECTIONS_REFUSED, "reason" => "silent").increment(1);
        tracing::debug!(address = %this.peer, "a connection was closed: its caller did not begin to speak HTTP/2");
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().io).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().io).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}
