//! Out of the queue: what is fetched from the server, handed to workers, acknowledged and given back.
//!
//! The server leaves a batch with this process as long as it says that it lives. Little is fetched ahead, so that the work
//! spreads over all processes: about twice what a worker asks for, and one batch at least of each lane that has any, so that
//! every tenant's turn can come. In a lane the server keeps to its own order: a tenant waits there behind what is before it of
//! another, which is bounded, since what is added to a long backlog goes through other lanes.

use std::sync::Mutex;

use async_nats::{Message, Subject};
use futures::{StreamExt, TryStreamExt};
use memfleet_domain::ingestion::Batch;
use memfleet_domain::time::{Clock, SystemClock};
use memfleet_ports::queue::{DeadLetter, Delivery};
use memfleet_ports::store::Result;

use crate::buffer::{Entry, Handed};
use crate::lanes;
use crate::message::{Circumstances, PAYLOAD_HASH, text};
use crate::shared::{Shared, Taking};
use crate::subject::Waiting;

/// Turns that are fetched ahead at least, so that small rounds see the tenants behind a small backlog.
const AHEAD: u64 = 64;

/// Messages that are acknowledged at once.
const AT_ONCE: usize = 64;

/// Says that a message is done with.
const ACKNOWLEDGED: &str = "+ACK";
/// Says that it is being worked on.
const PROGRESS: &str = "+WPI";
/// Gives it back at once.
const GIVEN_BACK: &str = "-NAK";
/// Gives it back for later: ten minutes.
const FOR_LATER: &str = r#"-NAK {"delay": 600000000000}"#;

/// A message that no worker can have.
enum Spoiled {
    /// Nobody can read it.
    Unread(Waiting, Message, u64, Circumstances),
    /// It was handed out again and again.
    TooOften(Entry),
}

impl Shared {
    pub async fn take(&self, turns: u32) -> Result<Vec<Delivery>> {
        let mut taking = self.taking.lock().await;
        self.prepared().await?;
        self.fetch(&mut taking, turns).await?;
        Ok(self.buffer().take(turns))
    }

    /// Asks marked lanes until enough is here or nothing is left.
    async fn fetch(&self, taking: &mut Taking, turns: u32) -> Result<()> {
        let wanted = (u64::from(turns) * 2).max(AHEAD);
        let mut is_first = true;
        loop {
            let here = self.buffer().waiting();
            let mut marked = self.lanes.marked();
            if here >= wanted {
                marked.retain(|(lane, _)| is_first && self.buffer().lacks(*lane));
            }
            if marked.is_empty() {
                return Ok(());
            }
            let missing = wanted.saturating_sub(here).max(1) as f64;
            let size = taking.usual_size.max(1.0) * marked.len() as f64;
            let count = if is_first {
                1
            } else {
                (missing / size).ceil() as u64
            };
            self.ask(taking, marked, count).await?;
            is_first = false;
        }
    }

    /// Up to `count` messages of each lane.
    async fn ask(&self, taking: &mut Taking, marked: Vec<(u8, u64)>, count: u64) -> Result<()> {
        let spoiled = Mutex::new(Vec::new());
        let sizes = Mutex::new(Vec::new());
        let pulls = marked.into_iter().map(async |(lane, signs)| {
            let receive = |message| match self.receive(lane, message) {
                Some(Ok(size)) => sizes.lock().expect("nothing panics here").push(size),
                Some(Err(one)) => spoiled.lock().expect("nothing panics here").push(one),
                None => {}
            };
            let (link, names) = (&self.link, &self.names);
            let is_more = lanes::pull(link, names, &self.lanes, lane, count, receive).await?;
            if !is_more {
                self.lanes.followed(lane, signs);
            }
            Ok(())
        });
        let asked: Result<Vec<()>> = futures::future::try_join_all(pulls).await;
        for size in sizes.into_inner().expect("nothing panics here") {
            taking.usual_size = taking.usual_size.mul_add(0.8, size as f64 * 0.2);
        }
        for one in spoiled.into_inner().expect("nothing panics here") {
            self.put_away(one).await?;
        }
        asked.map(|_| ())
    }

    /// Takes in what the server handed out; its size, or what is wrong with it. Nothing where it is none of ours.
    fn receive(&self, lane: u8, message: Message) -> Option<std::result::Result<u64, Spoiled>> {
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
        let attempts = u32::try_from(delivered.max(1) - 1).unwrap_or(u32::MAX);
        let batch = match serde_json::from_slice::<Batch>(&message.payload) {
            Ok(batch) => batch,
            Err(cause) => {
                let about = unreadable(&cause, &waiting, attempts + 1);
                return Some(Err(Spoiled::Unread(waiting, message, sequence, about)));
            }
        };
        let entry = Entry {
            sequence,
            position,
            size: (batch.turns.len() as u64).max(waiting.bytes >> 10).max(1),
            tenant: waiting.tenant,
            lane,
            attempts,
            reply,
            epoch: self.link.epoch(),
            batch,
        };
        if attempts >= self.options.max_deliveries {
            return Some(Err(Spoiled::TooOften(entry)));
        }
        let size = entry.size;
        self.buffer().put(entry);
        Some(Ok(size))
    }

    /// Makes a dead letter of what would stop every tenant.
    async fn put_away(&self, spoiled: Spoiled) -> Result<()> {
        match spoiled {
            Spoiled::Unread(waiting, message, sequence, about) => {
                tracing::error!(sequence, reason = about.reason, "dead letter");
                let hash = message
                    .headers
                    .as_ref()
                    .and_then(|headers| text(headers, PAYLOAD_HASH));
                self.bury_unread(&waiting, sequence, hash, &message.payload, &about)
                    .await?;
                self.link.delete(&self.names.ingest, sequence).await?;
                Ok(())
            }
            Spoiled::TooOften(entry) => {
                let reason = format!(
                    "DELIVERED_TOO_OFTEN: the batch was handed out {} times and never acknowledged; it may end whoever takes it",
                    entry.attempts
                );
                tracing::error!(sequence = entry.sequence, reason, "dead letter");
                let letter = DeadLetter {
                    acceptance: entry.position,
                    batch: entry.batch,
                    reason,
                    failed_at: SystemClock.now(),
                    attempts: entry.attempts,
                };
                self.dead_letter(&letter).await
            }
        }
    }

    /// Removes what was applied. What the server could not be told stays held, to be given back by its worker.
    pub async fn acknowledge(&self, positions: &[u64]) -> Result<()> {
        let known: Vec<_> = {
            let buffer = self.buffer();
            positions
                .iter()
                .flat_map(|position| buffer.at(*position))
                .collect()
        };
        if !known.is_empty() {
            self.prepared().await?;
        }
        let settling = futures::stream::iter(known).map(async |handed: Handed| {
            self.settle(&handed).await?;
            self.buffer().remove(handed.sequence);
            Ok(())
        });
        settling.buffer_unordered(AT_ONCE).try_collect::<()>().await
    }

    /// Returns when the server knows that a message is done with. Where it may not know that it handed it out (it was killed
    /// since, or another of its cluster took over) it leaves an acknowledgement unanswered: the message is deleted then.
    async fn settle(&self, handed: &Handed) -> Result<()> {
        if handed.epoch == self.link.epoch() {
            let subject = handed.reply.to_string();
            let told = self.link.request(subject, None, ACKNOWLEDGED.into());
            if let Ok(told) = tokio::time::timeout(self.link.timeout / 2, told).await {
                return told.map(|_| ());
            }
        }
        self.link
            .delete(&self.names.ingest, handed.sequence)
            .await?;
        Ok(())
    }

    pub fn release(&self, positions: &[u64], tried: bool) {
        {
            let mut buffer = self.buffer();
            for position in positions {
                buffer.release(*position, tried);
            }
        }
        self.ready.notify_one();
    }

    /// Says something about a message; unheard where the server cannot be reached.
    fn say(&self, reply: Subject, word: &'static str) {
        let client = self.link.client.clone();
        tokio::spawn(async move {
            let _unheard = client.publish(reply, word.into()).await;
        });
    }

    /// Says that everything here is being worked on, three times as often as it must. Never ends.
    pub async fn keep_alive(&self) {
        loop {
            let wait = *self.ack_wait.borrow() / 3;
            tokio::time::sleep(wait).await;
            if !self.link.reach().borrow().up {
                continue;
            }
            let replies = self.buffer().replies();
            for reply in replies {
                let _unheard = self.link.client.publish(reply, PROGRESS.into()).await;
            }
        }
    }

    /// Gives everything back to the server, for another process to have at once.
    pub async fn give_back(&self) {
        let replies = self.buffer().replies();
        self.buffer().clear();
        for reply in replies {
            let _unheard = self.link.client.publish(reply, GIVEN_BACK.into()).await;
        }
        let _unheard = self.link.client.flush().await;
    }
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
