//! The connection: whether it is up, requests that end in time, and what a refusal means.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::connection::State;
use async_nats::{Client, Event, HeaderMap, Message, Request};
use bytes::Bytes;
use memfleet_ports::store::{Result, StoreError};
use tokio::sync::{Notify, watch};

use crate::failure::{Failure, Refusal, code};
use crate::options::{Options, OptionsError};

/// Whether the server can be reached; `epoch` counts the connections that came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reach {
    pub up: bool,
    pub epoch: u64,
}

/// A connection that is kept up for ever.
#[derive(Debug)]
pub struct Link {
    pub client: Client,
    pub timeout: Duration,
    /// Told when the server turns out to have lost streams or consumers.
    pub lost: Notify,
    servers: String,
    reach: Arc<watch::Sender<Reach>>,
    trouble: Arc<Mutex<Option<String>>>,
}

impl Link {
    /// Begins to connect; whether that works is seen by the first call.
    pub async fn open(options: &Options) -> std::result::Result<Self, OptionsError> {
        let addresses = options.addresses()?;
        let named = addresses.iter().map(|address| {
            format!(
                "{}://{}:{}",
                address.scheme(),
                address.host(),
                address.port()
            )
        });
        let servers = named.collect::<Vec<_>>().join(", ");
        let reach = Arc::new(watch::Sender::new(Reach::default()));
        let sender = reach.clone();
        let trouble = Arc::new(Mutex::new(None));
        let (noted, names) = (trouble.clone(), servers.clone());
        let connection = options.connection().await?.event_callback(move |event| {
            note(&event, &sender, &noted, &names);
            std::future::ready(())
        });
        let connected = connection.connect(addresses).await;
        let client = connected.map_err(|error| OptionsError::Server(error.to_string()))?;
        Ok(Self {
            client,
            timeout: options.request_timeout,
            lost: Notify::new(),
            servers,
            reach,
            trouble,
        })
    }

    /// Where this goes, for messages.
    pub fn servers(&self) -> &str {
        &self.servers
    }

    /// To be told of every change.
    pub fn reach(&self) -> watch::Receiver<Reach> {
        self.reach.subscribe()
    }

    /// Sees for itself how the connection is: its events are best effort, and one that is lost must not stop everything.
    pub fn look(&self) {
        let is_up = self.client.connection_state() == State::Connected;
        self.reach.send_if_modified(|reach| {
            let is_changed = reach.up != is_up;
            reach.epoch += u64::from(is_changed && is_up);
            reach.up = is_up;
            is_changed
        });
    }

    /// Which connection this is, counted from 1.
    pub fn epoch(&self) -> u64 {
        self.reach.borrow().epoch
    }

    /// Returns when the server can be reached, or says that it cannot when the time of a request is over.
    pub async fn connected(&self) -> Result<()> {
        let mut reach = self.reach.subscribe();
        let up = async { reach.wait_for(|reach| reach.up).await.map(|_| ()) };
        match tokio::time::timeout(self.timeout, up).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(self.unavailable("the connection is closed")),
            Err(_) => Err(self.unreachable()),
        }
    }

    /// The server could not be reached in time, with what is known of why.
    pub fn unreachable(&self) -> StoreError {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        self.unavailable(trouble.as_deref().unwrap_or("no connection"))
    }

    /// An answer, in the time of a request.
    pub async fn request(
        &self,
        subject: String,
        headers: Option<HeaderMap>,
        payload: Bytes,
    ) -> Result<Message> {
        let asked = async {
            // Nothing is put in line for a server that is not there: it would be done long after its caller was told no.
            self.connected().await?;
            let mut request = Request::new().payload(payload).timeout(Some(self.timeout));
            if let Some(headers) = headers {
                request = request.headers(headers);
            }
            let answer = self.client.send_request(subject, request).await;
            answer.map_err(|error| self.unanswered(&error))
        };
        self.within(asked).await
    }

    /// Bounds what may hang on a connection that is lost meanwhile.
    pub async fn within<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let timed = tokio::time::timeout(self.timeout, work).await;
        timed.unwrap_or_else(|_| Err(self.unavailable("no answer in time")))
    }

    /// The server cannot be reached, or not now.
    pub fn unavailable(&self, cause: impl std::fmt::Display) -> StoreError {
        StoreError::Unavailable(format!("{}: {cause}", self.servers))
    }

    /// What a refusal means.
    pub fn refused(&self, refusal: &Refusal) -> Failure {
        let Refusal {
            code: status,
            err_code,
            description,
        } = refusal;
        let message = format!("{}: {description} (code {err_code})", self.servers);
        let error = match *err_code {
            code::STREAM_STORE_FAILED if description.contains("maximum") => {
                StoreError::Full(message)
            }
            code::STORAGE_EXCEEDED | code::INSUFFICIENT_RESOURCES => StoreError::Full(message),
            code::STREAM_NOT_FOUND | code::CONSUMER_NOT_FOUND => {
                self.lost.notify_one();
                StoreError::Unavailable(message)
            }
            code::DUPLICATE_IN_PROCESS | code::WRONG_LAST_SEQUENCE => {
                StoreError::Unavailable(message)
            }
            _ if *status == 503 => StoreError::Unavailable(message),
            _ => StoreError::Unexpected(message),
        };
        Failure {
            code: Some(*err_code),
            error,
        }
    }

    fn unanswered(&self, error: &async_nats::client::RequestError) -> StoreError {
        match error.kind() {
            RequestErrorKind::NoResponders => {
                self.lost.notify_one();
                self.unavailable("nobody answers there: JetStream is off, or a stream is gone")
            }
            RequestErrorKind::MaxPayloadExceeded => StoreError::Full(format!(
                "{}: the batch is more than the server takes (max_payload {})",
                self.servers,
                self.client.max_payload()
            )),
            RequestErrorKind::InvalidSubject => StoreError::Unexpected(error.to_string()),
            RequestErrorKind::TimedOut | RequestErrorKind::Other => self.unavailable(error),
        }
    }
}

/// Keeps what the connection says of itself.
fn note(
    event: &Event,
    reach: &watch::Sender<Reach>,
    trouble: &Mutex<Option<String>>,
    servers: &str,
) {
    let set = |cause: Option<String>| {
        *trouble.lock().unwrap_or_else(PoisonError::into_inner) = cause;
    };
    match event {
        Event::Connected => {
            set(None);
            tracing::info!(servers, "connected to NATS");
            reach.send_modify(|reach| {
                // Where a look was quicker, it is the same connection.
                reach.epoch += u64::from(!reach.up);
                reach.up = true;
            });
        }
        Event::Disconnected | Event::Closed => {
            tracing::warn!(servers, "disconnected from NATS");
            reach.send_modify(|reach| reach.up = false);
        }
        Event::ServerError(cause) => set(Some(cause.to_string())),
        Event::ClientError(cause) => set(Some(cause.to_string())),
        Event::LameDuckMode | Event::Draining | Event::SlowConsumer(_) => {}
    }
}
