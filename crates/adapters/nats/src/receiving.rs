//! What the server handed out, one message at a time: into the buffer, or to the dead letters where no worker can have it.

use async_nats::Message;
use memfleet_domain::ingestion::Batch;
use memfleet_domain::time::{Clock, SystemClock};
use memfleet_ports::store::Result;
use memfleet_trace::{REQUEST_ID, TRACEPARENT};

use crate::buffer::Entry;
use crate::message::{Circumstances, PAYLOAD_HASH, instant, text};
use crate::shared::Shared;
use crate::subject::Waiting;

/// Gives a message back for later: ten minutes.
const FOR_LATER: &str = r#"-NAK {"delay": 600000000000}"#;

/// Message that cannot be decoded.
pub struct Unread {
    waiting: Waiting,
    message: Message,
    sequence: u64,
    about: Circumstances,
}

impl Shared {
    /// Takes in what the server handed out; its size, or what is wrong with it. Nothing where it is none of ours.
    pub fn receive(&self, lane: u8, message: Message) -> Option<std::result::Result<u64, Unread>> {
        let reply = message.reply.clone()?;
        let handed = async_nats::jetstream::Message {
            message,
            context: async_nats::jetstream::new(self.link.client.clone()),
        };
        let (sequence, delivered) = handed
            .info()
            .map(|info| (info.stream_sequence, info.delivered))
            .ok()?;
        let message = handed.message;
        self.lanes.seen(lane, sequence);
        let Some(waiting) = Waiting::parse(&self.names, &message.subject) else {
            // Perhaps a newer version wrote it: it stays in the queue, out of the way.
            tracing::error!(
                sequence,
                "a message in the queue has a subject that is none of this version"
            );
            self.say(reply, FOR_LATER);
            return None;
        };
        let position = waiting.position(sequence);
        self.note_position(position);
        let handed_out = u32::try_from(delivered.max(1) - 1).unwrap_or(u32::MAX);
        let batch = match serde_json::from_slice::<Batch>(&message.payload) {
            Ok(batch) => batch,
            Err(cause) => {
                let about = unreadable(&cause, &waiting, handed_out + 1);
                return Some(Err(Unread {
                    waiting,
                    message,
                    sequence,
                    about,
                }));
            }
        };
        let entry = Entry {
            sequence,
            position,
            size: (batch.turns.len() as u64).max(waiting.bytes >> 10).max(1),
            tenant: waiting.tenant,
            lane,
            accepted_at: instant(waiting.accepted_at),
            attempts: 0,
            is_suspect: handed_out >= self.options.together,
            reply,
            epoch: self.link.epoch(),
            traceparent: header(&message, TRACEPARENT),
            request_id: header(&message, REQUEST_ID),
            batch,
        };
        let size = entry.size;
        self.buffer().put(entry);
        Some(Ok(size))
    }

    /// Makes a dead letter of what would stop every tenant.
    pub async fn put_away(&self, unread: Unread) -> Result<()> {
        let Unread {
            waiting,
            message,
            sequence,
            about,
        } = unread;
        tracing::error!(sequence, reason = about.reason, "dead letter");
        let headers = message.headers.as_ref();
        let hash = headers.and_then(|headers| text(headers, PAYLOAD_HASH));
        self.bury_unread(&waiting, sequence, hash, &message.payload, &about)
            .await?;
        self.link.delete(&self.names.ingest, sequence).await?;
        Ok(())
    }

    /// Says something about a message; unheard where the server cannot be reached.
    pub fn say(&self, reply: async_nats::Subject, word: &'static str) {
        let client = self.link.client.clone();
        tokio::spawn(async move {
            let _unheard = client.publish(reply, word.into()).await;
        });
    }
}

fn header(message: &Message, name: &'static str) -> Option<String> {
    text(message.headers.as_ref()?, name).map(str::to_owned)
}

/// The reason names the place of the damage and not the cause's own words, which may quote what a tenant wrote.
fn unreadable(cause: &serde_json::Error, waiting: &Waiting, attempts: u32) -> Circumstances {
    let (category, column) = (cause.classify(), cause.column());
    Circumstances {
        reason: format!(
            "PAYLOAD_UNREADABLE: the queued batch cannot be read ({category:?} at byte {column}); it is kept as it was found"
        ),
        failed_at: SystemClock.now().timestamp_micros(),
        attempts,
        accepted_at: waiting.accepted_at,
    }
}
