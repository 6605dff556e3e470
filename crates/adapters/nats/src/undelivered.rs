//! What a forget takes out of the queue and out of the dead letters.
//!
//! The rest of a batch is put back at its old position before the whole is deleted, and the bytes of what is deleted are
//! overwritten by the server. What was applied leaves the stream by its acknowledgement and not by this: its bytes stay in the
//! server's files until the server compacts them, which is a matter of encrypting these files.

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt};
use memfleet_domain::Scope;
use memfleet_domain::ingestion::Batch;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::store::Result;
use memfleet_ports::undelivered::{Matching, Parted, Undelivered, Unreadable};

use crate::api::Found;
use crate::link::{Failure, code};
use crate::message;
use crate::queue::NatsQueue;
use crate::shared::Shared;
use crate::subject::{Letter, Waiting};

/// Messages that are read at once: each may be as large as a request.
const AT_ONCE: usize = 4;

#[async_trait]
impl Undelivered for NatsQueue {
    async fn last_acceptance(&self) -> Result<u64> {
        self.shared.prepared().await?;
        let info = self.shared.link.stream(&self.shared.names.ingest).await?;
        Ok(info.state.last_seq)
    }

    async fn matching(
        &self,
        scope: &Scope,
        filter: &TurnFilter,
        unreadable: Unreadable,
    ) -> Result<Matching> {
        self.shared.prepared().await?;
        Ok(Matching {
            queued: self.shared.match_waiting(scope, filter, unreadable).await?,
            letters: self.shared.match_letters(scope, filter, unreadable).await?,
        })
    }

    async fn withdraw(&self, scope: &Scope, matching: &Matching) -> Result<()> {
        self.shared.prepared().await?;
        for parted in &matching.queued {
            self.shared.withdraw_waiting(scope, parted).await?;
            // A worker may have made a letter of it meanwhile; one that does so later sees what is left.
            self.shared.withdraw_letter(scope, parted).await?;
        }
        for parted in &matching.letters {
            self.shared.withdraw_letter(scope, parted).await?;
        }
        Ok(())
    }

    async fn has_letters(&self, scope: &Scope) -> Result<bool> {
        self.shared.prepared().await?;
        let filter = self.shared.names.letters_of(scope);
        let letters = &self.shared.names.letters;
        Ok(!self
            .shared
            .link
            .subjects(letters, &filter)
            .await?
            .is_empty())
    }
}

impl Shared {
    async fn match_waiting(
        &self,
        scope: &Scope,
        filter: &TurnFilter,
        unreadable: Unreadable,
    ) -> Result<Vec<Parted>> {
        let (stream, all) = (&self.names.ingest, self.names.waiting_of(scope));
        let subjects = self.link.subjects(stream, &all).await?;
        let parted = futures::stream::iter(subjects).map(async |subject| {
            let Some(waiting) = Waiting::parse(&self.names, &subject) else {
                return Ok(None);
            };
            let Some(found) = self.link.last(stream, &subject).await? else {
                return Ok(None);
            };
            let position = waiting.position(found.sequence);
            Ok(match serde_json::from_slice::<Batch>(&found.payload) {
                Ok(batch) => Parted::of(&batch, position, filter),
                Err(_) => unreadable
                    .goes(message::instant(waiting.accepted_at))
                    .then(|| Parted::unreadable(waiting.batch, position)),
            })
        });
        in_order(parted.buffered(AT_ONCE)).await
    }

    async fn match_letters(
        &self,
        scope: &Scope,
        filter: &TurnFilter,
        unreadable: Unreadable,
    ) -> Result<Vec<Parted>> {
        let places = self.letter_places(&self.names.letters_of(scope)).await?;
        let parted = futures::stream::iter(places).map(async |place| {
            let Some(found) = self.letter_at(&place).await? else {
                return Ok(None);
            };
            Ok(match serde_json::from_slice::<Batch>(&found.payload) {
                Ok(batch) => Parted::of(&batch, place.position, filter),
                Err(_) => {
                    // Without its circumstances nobody can tell when it was given up: as if for ever.
                    let failed_at = message::circumstances(&found).map(|about| about.failed_at);
                    unreadable
                        .goes(message::instant(failed_at.unwrap_or(i64::MIN)))
                        .then(|| Parted::unreadable(place.batch, place.position))
                }
            })
        });
        in_order(parted.buffered(AT_ONCE)).await
    }

    async fn withdraw_waiting(&self, scope: &Scope, parted: &Parted) -> Result<()> {
        loop {
            let mut all = self.all_waiting(scope, parted.batch).await?;
            all.retain(|(found, waiting)| waiting.position(found.sequence) == parted.acceptance);
            all.sort_by_key(|(found, _)| found.sequence);
            let Some((youngest, waiting)) = all.pop() else {
                return Ok(());
            };
            // Where an earlier forget stopped half-way, the youngest is what is left of the others.
            for (older, _) in all {
                self.take_out(older.sequence, parted.acceptance).await?;
            }
            let rest = match rest(&youngest.payload, parted) {
                Rest::Same => return Ok(()),
                Rest::Some(rest) => Some(rest),
                Rest::Nothing => None,
            };
            let put = match rest {
                Some(rest) => {
                    self.put_rest(scope, &rest, &waiting, &youngest, parted)
                        .await?
                }
                None => None,
            };
            if self.take_out(youngest.sequence, parted.acceptance).await? {
                return Ok(());
            }
            // It was applied, buried or parted meanwhile: what was put back is no longer the rest of it.
            if let Some(sequence) = put {
                self.take_out(sequence, parted.acceptance).await?;
            }
        }
    }

    /// Whether the message was there.
    async fn take_out(&self, sequence: u64, position: u64) -> Result<bool> {
        let was_there = self.link.delete(&self.names.ingest, sequence).await?;
        self.forget(sequence, position);
        Ok(was_there)
    }

    /// What no worker holds here is gone here too.
    fn forget(&self, sequence: u64, position: u64) {
        let mut buffer = self.buffer();
        if !buffer.holds(position) {
            buffer.remove(sequence);
        }
    }

    async fn put_rest(
        &self,
        scope: &Scope,
        rest: &Batch,
        whole: &Waiting,
        found: &Found,
        parted: &Parted,
    ) -> Result<Option<u64>> {
        let payload = bytes::Bytes::from(message::json(rest));
        let accepted_at = message::instant(whole.accepted_at);
        let turns = rest.turns.len();
        let mut waiting = Waiting::new(scope, rest.id, turns, payload.len(), accepted_at);
        waiting.position = Some(parted.acceptance);
        // Another forget of the same whole leaves something else.
        let hash = blake3::hash(&payload).to_hex();
        let id = format!("rest-{}-{}-{}", whole.space, found.sequence, &hash[..16]);
        let headers = message::of_batch(&id, None);
        let subject = waiting.subject(&self.names);
        let stored = self.offer(&subject, &headers, &payload).await?;
        self.announce(&waiting, stored.seq).await;
        Ok((!stored.duplicate).then_some(stored.seq))
    }

    async fn withdraw_letter(&self, scope: &Scope, parted: &Parted) -> Result<()> {
        let place = Letter::new(scope, parted.batch, parted.acceptance);
        loop {
            let Some(found) = self.letter_at(&place).await? else {
                return Ok(());
            };
            let rest = match rest(&found.payload, parted) {
                Rest::Some(rest) => rest,
                Rest::Same => return Ok(()),
                Rest::Nothing => {
                    if self
                        .link
                        .delete(&self.names.letters, found.sequence)
                        .await?
                    {
                        return Ok(());
                    }
                    continue;
                }
            };
            let about = message::circumstances(&found)?;
            let headers = message::of_letter(&about, None, found.sequence);
            let payload = message::json(&rest).into();
            match self
                .link
                .put(place.subject(&self.names), headers, payload)
                .await
            {
                Err(Failure {
                    code: Some(code::WRONG_LAST_SEQUENCE),
                    ..
                }) => {}
                put => return Ok(put.map(|_| ())?),
            }
        }
    }
}

/// What is left of a batch.
enum Rest {
    Nothing,
    Some(Batch),
    Same,
}

fn rest(payload: &[u8], parted: &Parted) -> Rest {
    let mut batch: Batch = match serde_json::from_slice(payload) {
        Ok(batch) => batch,
        Err(_) if parted.is_unreadable() => return Rest::Nothing,
        // It was readable when it was looked at: not the one that is meant.
        Err(_) => return Rest::Same,
    };
    let before = batch.turns.len();
    batch.turns.retain(|turn| !parted.gone.contains(&turn.id));
    match batch.turns.len() {
        left if left == before => Rest::Same,
        0 => Rest::Nothing,
        _ => Rest::Some(batch),
    }
}

async fn in_order(
    parted: impl futures::Stream<Item = Result<Option<Parted>>>,
) -> Result<Vec<Parted>> {
    let mut all: Vec<Parted> = parted
        .try_filter_map(|parted| std::future::ready(Ok(parted)))
        .try_collect()
        .await?;
    all.sort_by_key(|parted| parted.acceptance);
    Ok(all)
}
