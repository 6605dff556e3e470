//! Into the queue.
//!
//! The same batch is one message: in a process its publishes come one after the other, and each looks for the batch first;
//! between processes the server drops a message whose id it saw lately. That id means "was published", not "waits": where the
//! server drops a message whose first copy is gone (applied and forgotten since, or a dead letter), it is published again under
//! an id that follows from the place of that copy, so that two who do so at once are still one. What slips through all of
//! this the ledger knows by its key.

use std::pin::pin;
use std::sync::atomic::Ordering;

use futures::TryStreamExt;
use memfleet_domain::Scope;
use memfleet_domain::ids::BatchId;
use memfleet_domain::ingestion::Batch;
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::ContentHash;
use memfleet_ports::queue::{Bounds, Published};
use memfleet_ports::store::{Result, StoreError};

use crate::api::{Found, Stored};
use crate::failure::{Failure, Outcome, code};
use crate::message;
use crate::names::space_token;
use crate::shared::Shared;
use crate::subject::Waiting;

/// What the headers of a message take at most; they count too.
const HEADERS: usize = 1 << 10;

/// How often a message is offered again that the server is storing for somebody else at this moment.
const OFFERS: u32 = 50;
/// The pause between.
const OFFER_PAUSE: std::time::Duration = std::time::Duration::from_millis(10);

impl Shared {
    pub async fn publish(
        &self,
        batch: &Batch,
        now: Timestamp,
        bounds: Bounds,
    ) -> Result<Published> {
        self.prepared().await?;
        let payload = message::json(batch);
        self.refuse_too_large(payload.len())?;
        let _line = self.line(&batch.scope, batch.id).lock().await;
        let hash = batch.payload_hash();
        let (waiting, ()) = futures::try_join!(
            self.find_waiting(&batch.scope, batch.id),
            self.refuse_other_letter(batch, &hash),
        )?;
        if let Some((found, waiting)) = waiting {
            message::check_hash(&found.headers, &hash)?;
            return Ok(duplicate(&waiting, found.sequence));
        }
        let turns = batch.turns.len();
        let waiting = Waiting::new(&batch.scope, batch.id, turns, payload.len(), now);
        let (place, waiting) = self.admit(waiting, bounds).await?;
        let published = self.send(batch, &waiting, payload.into(), &hash).await;
        match &published {
            Ok(Published {
                duplicate: true, ..
            }) => place.give_up(),
            Ok(Published { acceptance, .. }) => self.announce(&waiting, *acceptance).await,
            Err(_) => drop(place),
        }
        published
    }

    /// Said before anything is sent: the server would close the connection on everybody.
    fn refuse_too_large(&self, bytes: usize) -> Result<()> {
        let limit = self.link.client.max_payload().saturating_sub(HEADERS);
        match bytes > limit {
            true => Err(StoreError::TooLarge { bytes, limit }),
            false => Ok(()),
        }
    }

    fn line(&self, scope: &Scope, batch: BatchId) -> &tokio::sync::Mutex<()> {
        let mut hasher = blake3::Hasher::new();
        hasher.update(space_token(scope).as_bytes());
        hasher.update(batch.as_bytes());
        let [first, second, ..] = *hasher.finalize().as_bytes();
        let number = usize::from(u16::from_be_bytes([first, second]));
        &self.lines[number % self.lines.len()]
    }

    /// A dead letter with another payload could not be replayed beside this one.
    async fn refuse_other_letter(&self, batch: &Batch, hash: &ContentHash) -> Result<()> {
        if self.has_no_letters().await? {
            return Ok(());
        }
        let filter = self.names.letters_of_batch(&batch.scope, batch.id);
        let places = self.letter_places(&filter).await?;
        let mut letters = pin!(self.read_letters(places));
        while let Some((found, _)) = letters.try_next().await? {
            message::check_hash(&found.headers, hash)?;
        }
        Ok(())
    }

    async fn send(
        &self,
        batch: &Batch,
        waiting: &Waiting,
        payload: bytes::Bytes,
        hash: &ContentHash,
    ) -> Result<Published> {
        let (subject, first_id) = (waiting.subject(&self.names), message_id(waiting));
        let mut id = first_id.clone();
        // Whatever was given out so far is before what is given out from now on.
        let highest = self.highest.load(Ordering::Acquire);
        loop {
            let headers = message::of_batch(&id, Some(&hash.to_string()));
            let stored = self.offer(&subject, &headers, &payload).await?;
            if !stored.duplicate && stored.seq <= highest {
                self.link.delete(&self.names.ingest, stored.seq).await?;
                return Err(self.is_put_back());
            }
            if !stored.duplicate {
                self.note_position(stored.seq);
                return Ok(Published {
                    acceptance: stored.seq,
                    duplicate: false,
                });
            }
            let found = self.link.message_at(&self.names.ingest, stored.seq).await?;
            if let Some((found, first)) = found.and_then(|found| self.of_batch(found, batch)) {
                message::check_hash(&found.headers, hash)?;
                return Ok(duplicate(&first, found.sequence));
            }
            id = format!("{first_id}-{}", stored.seq);
        }
    }

    fn of_batch(&self, found: Found, batch: &Batch) -> Option<(Found, Waiting)> {
        let waiting = Waiting::parse(&self.names, &found.subject)?;
        let is_same = waiting.batch == batch.id && waiting.space == space_token(&batch.scope);
        is_same.then_some((found, waiting))
    }

    /// Puts a message into the queue; waits where the same is being stored for somebody else.
    pub async fn offer(
        &self,
        subject: &str,
        headers: &async_nats::HeaderMap,
        payload: &bytes::Bytes,
    ) -> Outcome<Stored> {
        let mut offers = 0;
        loop {
            let put = self
                .link
                .put(subject.to_owned(), headers.clone(), payload.clone());
            match put.await {
                Err(Failure {
                    code: Some(code::DUPLICATE_IN_PROCESS),
                    ..
                }) if offers < OFFERS => {
                    offers += 1;
                    tokio::time::sleep(OFFER_PAUSE).await;
                }
                stored => return stored,
            }
        }
    }

    /// Tells whoever takes, here and elsewhere, that there is something in a lane. Best effort: they also look by themselves.
    pub async fn announce(&self, waiting: &Waiting, sequence: u64) {
        self.lanes.published(waiting.lane, sequence);
        self.ready.notify_one();
        let note = bytes::Bytes::copy_from_slice(&[waiting.lane]);
        let _unheard = self.link.client.publish(self.names.wake(), note).await;
    }
}

fn duplicate(waiting: &Waiting, sequence: u64) -> Published {
    Published {
        acceptance: waiting.position(sequence),
        duplicate: true,
    }
}

fn message_id(waiting: &Waiting) -> String {
    format!("{}-{}", waiting.space, waiting.batch)
}
