//! The streams and consumers that the queue lives in: made where they are missing, and otherwise compared. What an operator set
//! differently is reported and never overwritten.
//!
//! The stream of what waits refuses new messages when it is full, rather than to drop old ones; the stream of dead letters keeps
//! one message a subject, so that a letter is rewritten in one step.

use std::time::Duration;

use async_nats::HeaderMap;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use memfleet_ports::store::Result;
use serde_json::{Map, Value, json};

use crate::difference::{Difference, compare};
use crate::failure::{Failure, Outcome, code};
use crate::link::Link;
use crate::names::{LANES, Names};
use crate::options::Options;

/// Messages of a lane that may be in the hands of all processes together: far more than they take at once, since the server
/// hands out nothing beyond.
const MAX_ACK_PENDING: u64 = 10_000;

/// Positions that are passed over at once.
const SKIPPED_AT_ONCE: usize = 512;

/// Consumers that are asked for at once.
const AT_ONCE: usize = 8;

/// How long the server itself knows a message that was published twice.
const DUPLICATE_WINDOW: u64 = 120_000_000_000;

/// Positions whose tries are counted at a time, and for how long after the last.
const MAX_TRIES: u64 = 100_000;
const TRIES_AGE: Duration = Duration::from_hours(7 * 24);

/// What happens in a fleet, that of roles to come too: what a stream takes is settled when it is made.
const EVENTS: [&str; 7] = [
    "stored",
    "forgotten",
    "facts",
    "episode",
    "conflict",
    "refreshed",
    "consolidated",
];

/// What readers may be behind by, in shares of what may wait: these messages are short.
const EVENTS_SHARE: u64 = 16;

/// What was found, or made.
#[derive(Debug, Default)]
pub struct Prepared {
    pub differences: Vec<Difference>,
    /// When the stream of what waits was made: another instant is another stream, whose positions mean other batches.
    pub created: String,
    /// The last position that was given out.
    pub last_sequence: u64,
    /// The stream stood at this position, though later ones had been given out.
    pub put_back_to: Option<u64>,
    /// How long the server leaves a batch with a process that says nothing.
    pub ack_wait: Duration,
}

/// The name of a lane's consumer.
pub fn consumer(lane: u8) -> String {
    format!("ingest-{lane}")
}

/// Makes what is missing and compares the rest. `first` is the position that a new stream begins with.
pub async fn prepare(
    link: &Link,
    names: &Names,
    options: &Options,
    first: u64,
) -> Result<Prepared> {
    let mut prepared = Prepared::default();
    let differences = &mut prepared.differences;
    let mut is_new = false;
    for (name, mut config) in streams(names, options) {
        if *name == names.ingest && first > 1 {
            config.insert("first_seq".into(), json!(first));
        }
        let is_made = ensure_stream(link, name, config, differences).await?;
        if is_made && *name == names.ingest {
            tracing::info!(stream = name, first, "stream made");
            is_new = true;
        }
    }
    let lanes = (0..LANES).map(|lane| ensure_consumer(link, names, options, lane));
    let made: Vec<_> = futures::stream::iter(lanes)
        .buffered(AT_ONCE)
        .try_collect()
        .await?;
    prepared.ack_wait = options.ack_wait;
    for (wait, found) in made {
        prepared.ack_wait = prepared.ack_wait.min(wait);
        differences.extend(found);
    }
    differences.extend(limits(link, options));
    let mut info = link.stream(&names.ingest).await?;
    let last = info.state.last_seq;
    if last + 1 < first {
        // A server older than 2.10 begins every stream with 1.
        prepared.put_back_to = (!is_new).then_some(last);
        move_on(link, names, first - 1 - last).await?;
        info = link.stream(&names.ingest).await?;
    }
    prepared.last_sequence = info.state.last_seq;
    prepared.created = info.created;
    Ok(prepared)
}

/// Settings of streams and consumers that differ from those of this build. One that is missing is
/// a failure.
pub async fn differences(
    link: &Link,
    names: &Names,
    options: &Options,
) -> Outcome<Vec<Difference>> {
    let mut differences = Vec::new();
    for (name, expected) in streams(names, options) {
        let found = link.stream(name).await?;
        compare(name, &found.config, &expected, &mut differences);
    }
    for lane in 0..LANES {
        let name = consumer(lane);
        let found = link.consumer(&names.ingest, &name).await?;
        let place = format!("{}/{name}", names.ingest);
        let expected = of_lane(names, options, lane);
        compare(&place, &found.config, &expected, &mut differences);
    }
    differences.extend(limits(link, options));
    Ok(differences)
}

/// Uses positions up. Nothing is taken out of the stream for it: what waits in a copy of an older state may be all that there is of
/// an accepted batch.
async fn move_on(link: &Link, names: &Names, positions: u64) -> Result<()> {
    tracing::warn!(
        stream = names.ingest,
        positions,
        "positions are passed over"
    );
    let skipped = names.skipped();
    let skipping = futures::stream::iter(0..positions)
        .map(|_| link.put(skipped.clone(), HeaderMap::new(), Bytes::new()));
    skipping
        .buffer_unordered(SKIPPED_AT_ONCE)
        .try_for_each(|_| std::future::ready(Ok(())))
        .await?;
    Ok(link.purge(&names.ingest, &skipped).await?)
}

/// What is no setting of a stream or consumer.
fn limits(link: &Link, options: &Options) -> Option<Difference> {
    let max_payload = link.client.max_payload();
    (max_payload < options.largest_batch).then(|| Difference {
        place: link.servers().to_owned(),
        field: "max_payload".into(),
        found: max_payload.to_string(),
        expected: format!("{} at least", options.largest_batch),
    })
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Every stream by its name, as this build makes it.
fn streams<'a>(names: &'a Names, options: &Options) -> [(&'a String, Map<String, Value>); 4] {
    [
        (&names.ingest, ingest(names, options)),
        (&names.letters, letters(names, options)),
        (&names.events, events(names, options)),
        (&names.tries, tries(names, options)),
    ]
}

fn ingest(names: &Names, options: &Options) -> Map<String, Value> {
    object(json!({
        "name": names.ingest,
        "subjects": [names.all_waiting()],
        "retention": "workqueue",
        "storage": "file",
        "discard": "new",
        "num_replicas": options.replicas,
        "max_bytes": options.max_bytes,
        "max_msgs": options.max_batches,
        "max_msgs_per_subject": -1,
        "max_age": 0,
        "max_consumers": -1,
        "duplicate_window": DUPLICATE_WINDOW,
        "deny_delete": false,
    }))
}

fn letters(names: &Names, options: &Options) -> Map<String, Value> {
    object(json!({
        "name": names.letters,
        "subjects": [names.all_letters()],
        "retention": "limits",
        "storage": "file",
        "discard": "old",
        "num_replicas": options.replicas,
        "max_bytes": -1,
        "max_msgs": -1,
        "max_msgs_per_subject": 1,
        "max_age": 0,
        "max_consumers": -1,
        "duplicate_window": DUPLICATE_WINDOW,
        "deny_delete": false,
    }))
}

/// One number a position, long after whatever it counts has left the queue.
fn tries(names: &Names, options: &Options) -> Map<String, Value> {
    object(json!({
        "name": names.tries,
        "subjects": [names.tried("*")],
        "retention": "limits",
        "storage": "file",
        "discard": "old",
        "num_replicas": options.replicas,
        "max_bytes": -1,
        "max_msgs": MAX_TRIES,
        "max_msgs_per_subject": 1,
        "max_age": TRIES_AGE.as_nanos() as u64,
        "max_consumers": -1,
        "duplicate_window": DUPLICATE_WINDOW,
        "deny_delete": false,
    }))
}

/// A message stays until every consumer that there is has acknowledged it. When readers are far behind new ones are refused: they
/// wait in the outbox of the store, so that one reader that is gone does not fill the disk that the queue needs.
fn events(names: &Names, options: &Options) -> Map<String, Value> {
    let subjects = EVENTS.map(|kind| names.event(kind, "*"));
    object(json!({
        "name": names.events,
        "subjects": subjects,
        "retention": "interest",
        "storage": "file",
        "discard": "new",
        "num_replicas": options.replicas,
        "max_bytes": options.max_bytes / EVENTS_SHARE,
        "max_msgs": -1,
        "max_msgs_per_subject": -1,
        "max_age": 0,
        "max_consumers": -1,
        "duplicate_window": DUPLICATE_WINDOW,
        "deny_delete": false,
    }))
}

fn of_lane(names: &Names, options: &Options, lane: u8) -> Map<String, Value> {
    object(json!({
        "durable_name": consumer(lane),
        "filter_subject": names.of_lane(lane),
        "deliver_policy": "all",
        "ack_policy": "explicit",
        "ack_wait": options.ack_wait.as_nanos() as u64,
        "max_deliver": -1,
        "max_ack_pending": MAX_ACK_PENDING,
        "replay_policy": "instant",
    }))
}

/// Whether the stream was made.
async fn ensure_stream(
    link: &Link,
    name: &str,
    expected: Map<String, Value>,
    differences: &mut Vec<Difference>,
) -> Outcome<bool> {
    match link.stream(name).await {
        Ok(info) => compare(name, &info.config, &expected, differences),
        Err(Failure {
            code: Some(code::STREAM_NOT_FOUND),
            ..
        }) => match link.make_stream(name, &expected).await {
            Ok(()) => return Ok(true),
            // Another process was quicker, with other options.
            Err(Failure {
                code: Some(code::STREAM_NAME_IN_USE),
                ..
            }) => {
                let info = link.stream(name).await?;
                compare(name, &info.config, &expected, differences);
            }
            Err(failure) => return Err(failure),
        },
        Err(failure) => return Err(failure),
    }
    Ok(false)
}

/// How long the consumer leaves a batch with a process that says nothing, and what is different about it.
async fn ensure_consumer(
    link: &Link,
    names: &Names,
    options: &Options,
    lane: u8,
) -> Outcome<(Duration, Vec<Difference>)> {
    let (stream, name) = (&names.ingest, consumer(lane));
    let expected = of_lane(names, options, lane);
    let info = match link.consumer(stream, &name).await {
        Err(Failure {
            code: Some(code::CONSUMER_NOT_FOUND),
            ..
        }) => match link.make_consumer(stream, &name, &expected).await {
            Err(Failure {
                code: Some(code::CONSUMER_EXISTS),
                ..
            }) => link.consumer(stream, &name).await?,
            made => made?,
        },
        found => found?,
    };
    let mut differences = Vec::new();
    let place = format!("{stream}/{name}");
    compare(&place, &info.config, &expected, &mut differences);
    let wait = info.config.get("ack_wait").and_then(Value::as_u64);
    let wait = wait.map_or(options.ack_wait, Duration::from_nanos);
    Ok((wait, differences))
}
