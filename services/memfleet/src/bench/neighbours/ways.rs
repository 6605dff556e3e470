//! Ways in which a tenant behaves badly.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context as Task, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use http::header::{AUTHORIZATION, CONTENT_TYPE, TE};
use http::{Request, Uri};
use http_body::Frame;
use memfleet_domain::Fault;
use memfleet_domain::ids::SpaceId;
use memfleet_domain::time::{TimeRange, Timestamp};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::{RecallRequest, RememberRequest};
use memfleet_ports::refresher::ForgetRequest;
use memfleet_runtime::BoxError;
use memfleet_runtime::config::Secret;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tonic::body::Body;
use tonic::client::GrpcService;

use crate::bench::synthetic::Conversation;
use crate::bench::{forget, query};
use crate::cli::{Global, Handle};
use crate::corpus::accept;

/// A way to behave badly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Imports many turns, of which all is derived; nothing is wrong with it.
    Import,
    /// Opens single calls whose bodies never come.
    Bodies,
    /// Opens connections that say nothing.
    Connections,
    /// Opens streams that say nothing.
    Streams,
    /// Remembers and forgets in a loop.
    Forgets,
    /// Writes to many small spaces and searches each.
    Spaces,
    /// Searches a huge space for as much as it may.
    Huge,
    /// Sends requests as large as may be, and larger.
    Sizes,
    /// Makes calls that are refused, in a loop.
    Refused,
}

/// All of them.
pub const WAYS: [Way; 9] = [
    Way::Import,
    Way::Bodies,
    Way::Connections,
    Way::Streams,
    Way::Forgets,
    Way::Spaces,
    Way::Huge,
    Way::Sizes,
    Way::Refused,
];

/// Callers at once in the ways that are loops.
const CALLERS: u64 = 8;
/// Connections that streams and bodies are spread over: a server takes so many of each.
const CHANNELS: usize = 4;
/// Turns of one request of an import.
const REQUEST: usize = 200;
/// Largest text of a turn.
const TEXT: usize = 65_536;

impl fmt::Display for Way {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Import => "import",
            Self::Bodies => "bodies",
            Self::Connections => "connections",
            Self::Streams => "streams",
            Self::Forgets => "forgets",
            Self::Spaces => "spaces",
            Self::Huge => "huge",
            Self::Sizes => "sizes",
            Self::Refused => "refused",
        })
    }
}

impl FromStr for Way {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let way = WAYS.into_iter().find(|way| way.to_string() == text);
        way.ok_or_else(|| {
            let names: Vec<_> = WAYS.iter().map(Way::to_string).collect();
            format!("must be one of {}", names.join(", "))
        })
    }
}

/// How much of it.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Turns of the huge space, and of an import.
    pub turns: usize,
    /// Small spaces, connections, streams.
    pub many: usize,
}

/// The tenant that behaves badly.
#[derive(Clone)]
pub struct Neighbour {
    handle: Handle,
    global: Global,
    key: Secret,
    run: i64,
    sizes: Sizes,
    number: Arc<AtomicU64>,
}

impl Neighbour {
    pub async fn connect(
        global: &Global,
        key: Secret,
        run: i64,
        sizes: Sizes,
    ) -> Result<Self, BoxError> {
        Ok(Self {
            handle: Handle::connect(global).await?,
            global: global.clone(),
            key,
            run,
            sizes,
            number: Arc::default(),
        })
    }

    fn space(&self, name: impl fmt::Display) -> SpaceId {
        let name = format!("bench-neighbours-{}-{name}", self.run);
        SpaceId::new(name).expect("a short name")
    }

    /// What has to be there before the way begins.
    pub async fn prepare(&self, way: Way) -> Result<(), BoxError> {
        if way == Way::Huge {
            let turns = Conversation::new(3).turns(self.sizes.turns);
            accept(&*self.handle.memory, &self.space("huge"), turns).await?;
        }
        Ok(())
    }

    /// Takes back what a run left that goes on to cost something.
    pub async fn leave(&self, way: Way) {
        if way == Way::Import {
            // Where it came to nothing there is no such space.
            let _not_there = forget(&self.handle, self.space("import")).await;
        }
    }

    /// Behaves so until it is cut off. What is refused is part of it.
    pub async fn behave(self, way: Way) {
        match way {
            Way::Import => self.import().await,
            Way::Bodies => self.open("Recall").await,
            Way::Streams => self.open("RememberStream").await,
            Way::Connections => self.connections().await,
            Way::Forgets | Way::Spaces | Way::Huge | Way::Sizes => self.repeat(way).await,
            Way::Refused => self.refused().await,
        }
    }

    /// The next number, which no other caller of this tenant has.
    fn next(&self) -> u64 {
        self.number.fetch_add(1, Ordering::Relaxed)
    }

    async fn remember(&self, space: SpaceId, seed: u64, turns: usize) -> Result<(), Fault> {
        let request = RememberRequest {
            space,
            turns: Conversation::new(seed).turns(turns),
            idempotency_key: None,
        };
        let (memory, call) = (&self.handle.memory, self.handle.call());
        memory.remember(&call, request).await.map(drop)
    }

    async fn import(&self) {
        let mut left = self.sizes.turns;
        while left > 0 {
            let turns = left.min(REQUEST);
            match self
                .remember(self.space("import"), self.next(), turns)
                .await
            {
                Ok(()) => left -= turns,
                Err(fault) => {
                    let pause = fault.retry_after.unwrap_or(Duration::from_millis(100));
                    tokio::time::sleep(pause).await;
                }
            }
        }
        std::future::pending().await
    }

    /// As many calls of this method as are let in, each without a body; those that end are opened again.
    async fn open(&self, method: &str) {
        let mut channels = Vec::new();
        for _ in 0..CHANNELS {
            match Handle::client(&self.global).await {
                Ok(client) => channels.push(client.channel()),
                Err(fault) => eprintln!("a connection was refused: {fault}"),
            }
        }
        let uri = format!("http://node/memfleet.v1.Memory/{method}");
        let calls = (0..self.sizes.many.min(100 * CHANNELS)).filter_map(|number| {
            let mut channel = channels.get(number % CHANNELS)?.clone();
            let (uri, key) = (uri.clone(), format!("Bearer {}", self.key.expose()));
            Some(async move {
                loop {
                    let request = Request::post(&uri)
                        .header(CONTENT_TYPE, "application/grpc")
                        .header(TE, "trailers")
                        .header(AUTHORIZATION, &key)
                        .header("grpc-timeout", "10M")
                        .body(Body::new(Never))
                        .expect("a valid request");
                    let ready = std::future::poll_fn(|task| {
                        GrpcService::<Body>::poll_ready(&mut channel, task)
                    });
                    if ready.await.is_ok()
                        && let Ok(answer) = GrpcService::<Body>::call(&mut channel, request).await
                        && !answer.headers().contains_key("grpc-status")
                    {
                        // A stream that is open.
                        std::future::pending::<()>().await;
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            })
        });
        join_all(calls).await;
    }

    /// Connections that are closed are opened again.
    async fn connections(&self) {
        let uri: Uri = self.global.server.parse().unwrap_or_default();
        let address = uri.authority().map(ToString::to_string).unwrap_or_default();
        let connections = (0..self.sizes.many).map(|_| async {
            loop {
                if let Ok(mut connection) = TcpStream::connect(&address).await {
                    let mut bytes = [0; 64];
                    while connection
                        .read(&mut bytes)
                        .await
                        .is_ok_and(|count| count > 0)
                    {}
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
        join_all(connections).await;
    }

    /// Several callers, each making one call after the other.
    async fn repeat(&self, way: Way) {
        let callers = (0..CALLERS).map(|_| async {
            loop {
                let answer = match way {
                    Way::Forgets => self.remember_and_forget().await,
                    Way::Spaces => self.small_space().await,
                    Way::Huge => self.recall(self.space("huge"), 1_000).await,
                    _ => self.large_request().await,
                };
                if let Err(fault) = answer
                    && let Some(pause) = fault.retry_after
                {
                    // A hostile caller would not wait for so long; one that is refused at once is a way of its own.
                    tokio::time::sleep(pause.min(Duration::from_millis(50))).await;
                }
            }
        });
        join_all(callers).await;
    }

    async fn remember_and_forget(&self) -> Result<(), Fault> {
        let space = self.space("forgets");
        let request = RememberRequest {
            space: space.clone(),
            turns: Conversation::new(self.next()).turns(1),
            idempotency_key: None,
        };
        let (memory, call) = (&self.handle.memory, self.handle.call());
        let receipt = memory.remember(&call, request).await?;
        let filter = TurnFilter {
            turns: receipt.turns.iter().map(|turn| turn.id).collect(),
            ..TurnFilter::default()
        };
        let request = ForgetRequest {
            space,
            filter,
            everything: false,
            dry_run: false,
        };
        memory.forget(&self.handle.call(), request).await.map(drop)
    }

    async fn small_space(&self) -> Result<(), Fault> {
        let number = self.next() % self.sizes.many.max(1) as u64;
        let space = self.space(format!("small-{number}"));
        self.remember(space.clone(), number, 1).await?;
        self.recall(space, 10).await
    }

    async fn recall(&self, space: SpaceId, k: u32) -> Result<(), Fault> {
        let request =
            RecallRequest::from(query(&space, Conversation::new(self.next()).question(), k));
        let (memory, call) = (&self.handle.memory, self.handle.call());
        memory.recall(&call, request).await.map(drop)
    }

    /// In turn as large as a request may be, larger, texts to count, and a time without an end.
    async fn large_request(&self) -> Result<(), Fault> {
        let number = self.next();
        let call = self.handle.call();
        match number % 4 {
            0 | 1 => {
                let turns = if number.is_multiple_of(4) { 200 } else { 400 };
                let mut turns = Conversation::new(number).turns(turns);
                for turn in &mut turns {
                    turn.content.text = turn.content.text.repeat(1_000);
                    turn.content.text.truncate(TEXT);
                }
                let request = RememberRequest {
                    space: self.space("sizes"),
                    turns,
                    idempotency_key: None,
                };
                self.handle.memory.remember(&call, request).await.map(drop)
            }
            2 => {
                let letters = |seed: u64| {
                    let text = Conversation::new(seed).turns(1).remove(0).content.text;
                    text.replace(' ', "").repeat(4_000)
                };
                let texts: Vec<_> = (0..4).map(|part| letters(number * 4 + part)).collect();
                let counted = self
                    .handle
                    .assembly
                    .count_tokens(&call, "approximate", &texts);
                counted.await.map(drop)
            }
            _ => {
                let mut query = query(&self.space("sizes"), "word ".repeat(1_600), 1_000);
                query.neighbours = 10;
                query.filter.time = TimeRange {
                    start: Some(Timestamp::UNIX_EPOCH),
                    end: None,
                };
                let wait_for = Vec::new();
                let request = RecallRequest {
                    wait_for,
                    ..RecallRequest::from(query)
                };
                self.handle.memory.recall(&call, request).await.map(drop)
            }
        }
    }

    /// Calls with keys that no one has, and of spaces that are not there.
    async fn refused(&self) {
        let stranger = self.global.elsewhere(
            self.global.server.clone(),
            Some(Secret::from("a key of no one".to_owned())),
        );
        let strangers = join_all((0..CALLERS).map(|_| Handle::connect(&stranger))).await;
        let strangers = strangers.into_iter().flatten();
        let handles: Vec<Handle> = strangers
            .chain(std::iter::repeat_n(self.handle.clone(), CALLERS as usize))
            .collect();
        let callers = handles.into_iter().map(|handle| async move {
            loop {
                let request =
                    RecallRequest::from(query(&self.space("nowhere"), "anything".to_owned(), 10));
                let _refused = handle.memory.recall(&handle.call(), request).await;
            }
        });
        join_all(callers).await;
    }
}

/// A body that never comes.
struct Never;

impl http_body::Body for Never {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Task<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_named() {
        for way in WAYS {
            assert_eq!(way.to_string().parse(), Ok(way));
        }
        assert!("sideways".parse::<Way>().unwrap_err().contains("huge"));
    }
}
