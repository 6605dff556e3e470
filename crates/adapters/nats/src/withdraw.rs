//! Taking turns out of what waits and out of dead letters, whatever else happens to them at the same time.

use memfleet_domain::Scope;
use memfleet_domain::ingestion::Batch;
use memfleet_ports::store::Result;
use memfleet_ports::undelivered::Parted;

use crate::api::Found;
use crate::failure::{Failure, code};
use crate::message;
use crate::shared::Shared;
use crate::subject::{Letter, Waiting};

impl Shared {
    /// The rest of a batch waits at its old position.
    pub async fn withdraw_waiting(&self, scope: &Scope, parted: &Parted) -> Result<()> {
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

    /// The rest of a letter stays.
    pub async fn withdraw_letter(&self, scope: &Scope, parted: &Parted) -> Result<()> {
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
