//! What is asked of JetStream, as it stands in its protocol: small enough that plain requests are clearer than a second layer of
//! types and errors. Every question goes to the leader of the stream (no direct gets): an answer of a copy that lags behind
//! would tell a writer that its own write is not there.

use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::{HeaderMap, Message};
use bytes::Bytes;
use futures::TryStreamExt;
use memfleet_ports::store::StoreError;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::failure::{Failure, Outcome, Refusal, code};
use crate::link::Link;

/// Subjects that the server gives at once at most.
const SUBJECTS_A_PAGE: usize = 100_000;

/// Messages whose sizes are asked for at once.
const SIZES_A_PAGE: usize = 1_000;

/// Header of a message that comes without its payload: how many bytes that has.
const SIZE: &str = "Nats-Msg-Size";

/// Time after which the server removes an unused consumer.
const UNUSED: Duration = Duration::from_secs(30);

/// Answers that say no are short; long ones are not searched for it.
const LONGEST_REFUSAL: usize = 16 << 10;

#[derive(Deserialize)]
struct Refused {
    error: Option<Refusal>,
}

/// How a stream is.
#[derive(Debug, Deserialize)]
pub struct StreamInfo {
    pub config: Map<String, Value>,
    /// When it was made: another instant is another stream.
    #[serde(default)]
    pub created: String,
    pub state: StreamState,
    /// Subjects that match, on all pages.
    #[serde(default)]
    total: usize,
}

/// What is in a stream.
#[derive(Debug, Deserialize)]
pub struct StreamState {
    pub messages: u64,
    pub last_seq: u64,
    #[serde(default)]
    subjects: Option<std::collections::HashMap<String, u64>>,
}

/// How a consumer is.
#[derive(Debug, Deserialize)]
pub struct ConsumerInfo {
    pub config: Map<String, Value>,
}

/// That a message is stored.
#[derive(Debug, Deserialize)]
pub struct Stored {
    pub seq: u64,
    #[serde(default)]
    pub duplicate: bool,
}

/// A message as it lies in a stream.
pub type Found = async_nats::jetstream::message::StreamMessage;

/// Size of a message, and where it lies.
#[derive(Debug)]
pub struct MessageSize {
    pub subject: String,
    pub sequence: u64,
    /// Bytes of its payload.
    pub bytes: u64,
}

impl MessageSize {
    /// Reads what a consumer without payloads was given.
    fn of(message: &async_nats::jetstream::Message) -> Option<Self> {
        let size = message.headers.as_ref()?.get(SIZE)?;
        Some(Self {
            subject: message.subject.to_string(),
            sequence: message.info().ok()?.stream_sequence,
            bytes: size.as_str().parse().ok()?,
        })
    }
}

#[derive(Deserialize)]
struct Done {
    success: bool,
}

impl Link {
    /// The answer to a request, or the server's refusal.
    async fn ask<T: DeserializeOwned>(&self, subject: String, question: &Value) -> Outcome<T> {
        let payload = if question.is_null() {
            Bytes::new()
        } else {
            question.to_string().into()
        };
        let answer = self.request(format!("$JS.API.{subject}"), None, payload);
        self.read(&answer.await?)
    }

    fn read<T: DeserializeOwned>(&self, answer: &Message) -> Outcome<T> {
        let text = &answer.payload;
        if text.len() < LONGEST_REFUSAL
            && let Ok(Refused { error: Some(error) }) = serde_json::from_slice(text)
        {
            return Err(self.refused(&error));
        }
        serde_json::from_slice(text).map_err(|cause| {
            let message = format!("{}: not an answer of JetStream: {cause}", self.servers());
            StoreError::Unexpected(message).into()
        })
    }

    pub async fn stream(&self, name: &str) -> Outcome<StreamInfo> {
        self.ask(format!("STREAM.INFO.{name}"), &Value::Null).await
    }

    pub async fn make_stream(&self, name: &str, config: &Map<String, Value>) -> Outcome<()> {
        let made: Outcome<StreamInfo> = self
            .ask(format!("STREAM.CREATE.{name}"), &json!(config))
            .await;
        made.map(|_| ())
    }

    pub async fn consumer(&self, stream: &str, name: &str) -> Outcome<ConsumerInfo> {
        self.ask(format!("CONSUMER.INFO.{stream}.{name}"), &Value::Null)
            .await
    }

    pub async fn make_consumer(
        &self,
        stream: &str,
        name: &str,
        config: &Map<String, Value>,
    ) -> Outcome<ConsumerInfo> {
        let question = json!({"stream_name": stream, "config": config, "action": "create"});
        let subject = format!("CONSUMER.DURABLE.CREATE.{stream}.{name}");
        self.ask(subject, &question).await
    }

    /// The subjects in a stream that match. They come page by page, sorted: what comes or goes meanwhile may be missed or not.
    pub async fn subjects(&self, stream: &str, filter: &str) -> Outcome<Vec<String>> {
        let mut subjects = Vec::new();
        let mut offset = 0;
        loop {
            let question = json!({"subjects_filter": filter, "offset": offset});
            let info: StreamInfo = self.ask(format!("STREAM.INFO.{stream}"), &question).await?;
            let page = info.state.subjects.unwrap_or_default();
            let read = page.len();
            subjects.extend(page.into_keys());
            offset += read;
            if read < SUBJECTS_A_PAGE || offset >= info.total {
                return Ok(subjects);
            }
        }
    }

    /// Sizes of the messages whose subjects match, told by a consumer that gets no payloads.
    pub async fn sizes(&self, stream: &str, filter: &str) -> Result<Vec<MessageSize>, StoreError> {
        let stream = self.jetstream().get_stream_no_info(stream).await;
        let stream = stream.map_err(|error| self.unavailable(error))?;
        let consumer = stream.create_consumer(pull::Config {
            filter_subject: filter.to_owned(),
            ack_policy: AckPolicy::None,
            headers_only: true,
            memory_storage: true,
            num_replicas: 1,
            inactive_threshold: UNUSED,
            ..pull::Config::default()
        });
        let consumer = consumer.await.map_err(|error| self.unavailable(error))?;
        let wanted = consumer.cached_info().num_pending as usize;
        let mut sizes = Vec::with_capacity(wanted);
        while sizes.len() < wanted {
            let messages = consumer.fetch().max_messages(SIZES_A_PAGE).messages().await;
            let messages = messages.map_err(|error| self.unavailable(error))?;
            let page: Vec<_> = messages
                .try_collect()
                .await
                .map_err(|error| self.unavailable(error))?;
            if page.is_empty() {
                break;
            }
            sizes.extend(page.iter().filter_map(MessageSize::of));
        }
        let name = &consumer.cached_info().name;
        // Where it stays the server removes it later.
        let _removed = stream.delete_consumer(name).await;
        Ok(sizes)
    }

    /// The message at this place.
    pub async fn message_at(&self, stream: &str, sequence: u64) -> Outcome<Option<Found>> {
        let stream = self.jetstream().get_stream_no_info(stream).await;
        let stream = stream.map_err(|error| self.unavailable(error))?;
        let found = stream.raw_message_builder().sequence(sequence).send().await;
        self.found(found)
    }

    /// The oldest message whose subject matches.
    pub async fn first(&self, stream: &str, filter: &str) -> Outcome<Option<Found>> {
        let stream = self.jetstream().get_stream_no_info(stream).await;
        let stream = stream.map_err(|error| self.unavailable(error))?;
        let question = stream.raw_message_builder().sequence(1);
        self.found(question.next_by_subject(filter).send().await)
    }

    /// The youngest message whose subject matches.
    pub async fn last(&self, stream: &str, filter: &str) -> Outcome<Option<Found>> {
        let stream = self.jetstream().get_stream_no_info(stream).await;
        let stream = stream.map_err(|error| self.unavailable(error))?;
        let question = stream.raw_message_builder();
        self.found(question.last_by_subject(filter).send().await)
    }

    fn found(
        &self,
        answer: Result<Found, async_nats::jetstream::stream::RawMessageError>,
    ) -> Outcome<Option<Found>> {
        use async_nats::jetstream::stream::RawMessageErrorKind as Kind;
        let error = match answer {
            Ok(found) => return Ok(Some(found)),
            Err(error) => error,
        };
        match error.kind() {
            Kind::NoMessageFound => Ok(None),
            Kind::JetStream(refusal) => Err(self.refused(&Refusal {
                code: refusal.code() as u64,
                err_code: refusal.error_code().0,
                description: refusal.to_string(),
            })),
            Kind::InvalidSubject => Err(StoreError::Unexpected(error.to_string()).into()),
            Kind::Other => Err(self.unavailable(error).into()),
        }
    }

    fn jetstream(&self) -> async_nats::jetstream::Context {
        let context = async_nats::jetstream::context::ContextBuilder::new();
        context.timeout(self.timeout).build(self.client.clone())
    }

    /// Removes every message on a subject.
    pub async fn purge(&self, stream: &str, subject: &str) -> Outcome<()> {
        let question = json!({"filter": subject});
        let done: Outcome<Done> = self.ask(format!("STREAM.PURGE.{stream}"), &question).await;
        done.map(|_| ())
    }

    /// Whether the message was there; its bytes are overwritten.
    pub async fn delete(&self, stream: &str, sequence: u64) -> Outcome<bool> {
        let question = json!({"seq": sequence, "no_erase": false});
        let done: Outcome<Done> = self
            .ask(format!("STREAM.MSG.DELETE.{stream}"), &question)
            .await;
        match done {
            Ok(done) => Ok(done.success),
            Err(Failure {
                code: Some(code::NO_MESSAGE | code::NO_SEQUENCE),
                ..
            }) => Ok(false),
            // Older servers say so in words only.
            Err(Failure {
                code: Some(code::DELETE_FAILED),
                error,
            }) if !error.to_string().contains("not permitted") => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Durable when it returns, as durable as the server is.
    pub async fn put(
        &self,
        subject: String,
        headers: HeaderMap,
        payload: Bytes,
    ) -> Outcome<Stored> {
        let answer = self.request(subject, Some(headers), payload).await?;
        self.read(&answer)
    }
}
