//! What a message holds besides its subject: the batch as JSON, and what must be known of it in headers.

use async_nats::HeaderMap;
use memfleet_domain::Scope;
use memfleet_domain::ids::BatchId;
use memfleet_domain::ingestion::Batch;
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::ContentHash;
use memfleet_ports::queue::DeadLetter;
use memfleet_ports::store::StoreError;
use serde::{Deserialize, Serialize};

use crate::api::Found;

/// The hash of what was published; absent where a part of it was forgotten, since it says something about what is gone.
pub const PAYLOAD_HASH: &str = "Memfleet-Payload-Hash";
/// Why, when and after how many attempts a letter was given up, and when its batch was accepted.
pub const LETTER: &str = "Memfleet-Letter";
/// The server drops a message with an id that it saw lately.
const MESSAGE_ID: &str = "Nats-Msg-Id";
/// The message is stored only where this is the last place of its subject.
const EXPECTED: &str = "Nats-Expected-Last-Subject-Sequence";

/// What is known of a letter besides its turns.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Circumstances {
    pub reason: String,
    /// In microseconds.
    pub failed_at: i64,
    pub attempts: u32,
    /// When the batch was accepted, in microseconds.
    pub accepted_at: i64,
}

/// Headers of a batch on its way into the queue, in the trace of whoever sends it and under the id of the call.
pub fn of_batch(id: &str, hash: Option<&str>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(MESSAGE_ID, id);
    if let Some(hash) = hash {
        headers.insert(PAYLOAD_HASH, hash);
    }
    for (name, value) in memfleet_trace::travelling() {
        headers.insert(name, value);
    }
    headers
}

/// Headers of a letter that replaces what is at `last`, 0 for nothing.
pub fn of_letter(about: &Circumstances, hash: Option<&str>, last: u64) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(LETTER, json(about).as_str());
    headers.insert(EXPECTED, last.to_string().as_str());
    if let Some(hash) = hash {
        headers.insert(PAYLOAD_HASH, hash);
    }
    headers
}

/// A header as text.
pub fn text<'a>(headers: &'a HeaderMap, name: &'static str) -> Option<&'a str> {
    headers.get(name).map(async_nats::HeaderValue::as_str)
}

/// The letter in a message; without turns where they cannot be read.
pub fn letter(
    found: &Found,
    scope: &Scope,
    batch: BatchId,
    position: u64,
) -> Result<(DeadLetter, Circumstances), StoreError> {
    let about = circumstances(found)?;
    let unread = || Batch {
        id: batch,
        scope: scope.clone(),
        turns: Vec::new(),
    };
    let letter = DeadLetter {
        acceptance: position,
        batch: serde_json::from_slice(&found.payload).unwrap_or_else(|_| unread()),
        reason: about.reason.clone(),
        failed_at: instant(about.failed_at),
        attempts: about.attempts,
    };
    Ok((letter, about))
}

/// What is known of a letter besides its turns.
pub fn circumstances(found: &Found) -> Result<Circumstances, StoreError> {
    let about = text(&found.headers, LETTER);
    let read = about.and_then(|about| serde_json::from_str(about).ok());
    read.ok_or_else(|| {
        let place = found.sequence;
        StoreError::Damaged(format!(
            "the dead letter at {place} has no {LETTER} that can be read"
        ))
    })
}

/// An instant from microseconds.
pub fn instant(micros: i64) -> Timestamp {
    Timestamp::from_timestamp_micros(micros).unwrap_or(Timestamp::MIN_UTC)
}

/// Refuses another payload than the stored one, where that is known.
pub fn check_hash(headers: &HeaderMap, given: &ContentHash) -> Result<(), StoreError> {
    let given = given.to_string();
    match text(headers, PAYLOAD_HASH) {
        Some(stored) if stored != given => Err(StoreError::Conflict {
            what: "a batch with this idempotency key".into(),
            stored: stored.to_owned(),
            given,
        }),
        _ => Ok(()),
    }
}

/// Data of ours as JSON, on one line.
pub fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data becomes JSON")
}
