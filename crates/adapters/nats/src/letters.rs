//! Dead letters: what could not be applied, kept until it is replayed or forgotten.
//!
//! A letter is put before its batch leaves the queue, and a replayed batch is in the queue before its letter goes: a crash in
//! between leaves both, and what is done again then finds that it is done.

use std::collections::{HashMap, HashSet};
use std::pin::pin;

use async_nats::HeaderMap;
use futures::{StreamExt, TryStreamExt};
use memfleet_columns::GrowingPage;
use memfleet_domain::Scope;
use memfleet_domain::ids::{BatchId, SpaceId, TenantId, TurnId};
use memfleet_domain::ingestion::Batch;
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::queue::DeadLetter;
use memfleet_ports::store::{Result, StoreError};

use crate::api::Found;
use crate::failure::{Failure, code};
use crate::lookup::AT_ONCE;
use crate::message::{self, Circumstances, PAYLOAD_HASH, text};
use crate::names::tenant_token;
use crate::shared::Shared;
use crate::subject::{Letter, Waiting};

impl Shared {
    pub async fn dead_letters(
        &self,
        tenant: &TenantId,
        space: Option<&SpaceId>,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<DeadLetter>> {
        let after = match after {
            Some(token) => Some(token.0.parse::<u64>().map_err(|_| StoreError::PageToken)?),
            None => None,
        };
        let scope = |space: &SpaceId| Scope {
            tenant: tenant.clone(),
            space: space.clone(),
        };
        let filter = match space {
            Some(space) => self.names.letters_of(&scope(space)),
            None => self.names.letters_of_tenant(&tenant_token(tenant)),
        };
        let mut places = self.letter_places(&filter).await?;
        places.retain(|place| after.is_none_or(|after| place.position > after));
        let mut letters = pin!(self.read_letters(places));
        let mut page = GrowingPage::new(limit);
        while !page.is_over()
            && let Some((found, place)) = letters.try_next().await?
        {
            let scope = match space {
                Some(space) => scope(space),
                None => scope(&SpaceId::new(place.space.clone()).map_err(|error| {
                    StoreError::Damaged(format!("the subject of a dead letter: {error}"))
                })?),
            };
            let letter = message::letter(&found, &scope, place.batch, place.position)?.0;
            let token = PageToken(place.position.to_string());
            page.add(letter, found.payload.len(), token);
        }
        Ok(page.done())
    }

    /// Names of the spaces that a tenant has letters of, each from the youngest letter that can be
    /// read.
    pub async fn buried_spaces(&self, tenant: &TenantId) -> Result<Vec<SpaceId>> {
        let filter = self.names.letters_of_tenant(&tenant_token(tenant));
        let mut spaces: HashMap<String, Vec<Letter>> = HashMap::new();
        for place in self.letter_places(&filter).await? {
            spaces.entry(place.space.clone()).or_default().push(place);
        }
        let named = futures::stream::iter(spaces.into_values()).map(|places| async move {
            for place in places.iter().rev() {
                let found = self.letter_at(place).await?;
                let batch = found.and_then(|found| serde_json::from_slice(&found.payload).ok());
                if let Some(Batch { scope, .. }) = batch {
                    return Ok::<_, StoreError>(Some(scope.space));
                }
            }
            Ok(None)
        });
        let named: Vec<_> = named.buffer_unordered(AT_ONCE).try_collect().await?;
        Ok(named.into_iter().flatten().collect())
    }

    /// The latest letter of a batch.
    pub async fn buried(&self, scope: &Scope, batch: BatchId) -> Result<Option<DeadLetter>> {
        let filter = self.names.letters_of_batch(scope, batch);
        for place in self.letter_places(&filter).await?.into_iter().rev() {
            if let Some(found) = self.letter_at(&place).await? {
                return Ok(Some(
                    message::letter(&found, scope, batch, place.position)?.0,
                ));
            }
        }
        Ok(None)
    }

    /// Writes a letter of what was not forgotten since it was taken, and lets the queue go of it. What still waits at the
    /// position tells what was not forgotten; it is asked again after the letter is written, since a forget may have come in
    /// between (it in turn looks for letters after it took turns out of the queue).
    pub async fn dead_letter(&self, letter: &DeadLetter) -> Result<()> {
        let (scope, batch) = (&letter.batch.scope, letter.batch.id);
        let rest = self.without_forgotten(letter).await?;
        if rest.batch.turns.is_empty() && !letter.batch.turns.is_empty() {
            return self.let_go(scope, batch, letter.acceptance).await;
        }
        let letter = &rest;
        let mut stored = self.at_position(scope, batch, letter.acceptance).await?;
        // With nothing in the queue it is the second letter of a delivery, or of a batch that was forgotten as a whole, or that
        // another process applied. Only in the first case there is a letter.
        self.bury(letter, stored.as_ref(), Turns::of_a_letter)
            .await?;
        while let Some((before, _)) = &stored {
            let now = self.at_position(scope, batch, letter.acceptance).await?;
            let is_same = |(now, _): &(Found, _)| now.sequence == before.sequence;
            if now.as_ref().is_some_and(is_same) {
                break;
            }
            self.bury(letter, now.as_ref(), |_| Turns::None).await?;
            stored = now;
        }
        self.let_go(scope, batch, letter.acceptance).await
    }

    /// A turn may be sent again after it was forgotten: only the ledger knows.
    async fn without_forgotten(&self, letter: &DeadLetter) -> Result<DeadLetter> {
        let mut letter = letter.clone();
        let turns = &mut letter.batch.turns;
        let ids: Vec<TurnId> = turns.iter().map(|turn| turn.id).collect();
        if let Some(ledger) = &self.options.accepted
            && !ids.is_empty()
        {
            let forgotten = ledger.forgotten(&letter.batch.scope, &ids).await?;
            turns.retain(|turn| !forgotten.contains(&turn.id));
        }
        Ok(letter)
    }

    /// What waits at a position, the youngest where a part of it is being taken out.
    async fn at_position(
        &self,
        scope: &Scope,
        batch: BatchId,
        position: u64,
    ) -> Result<Option<(Found, Waiting)>> {
        let mut all = self.all_waiting(scope, batch).await?;
        all.retain(|(found, waiting)| waiting.position(found.sequence) == position);
        Ok(all.into_iter().max_by_key(|(found, _)| found.sequence))
    }

    /// Writes the letter with the turns of an earlier one from the same delivery. What may be in it where nothing is `stored`
    /// any more, `gone` tells from the earlier letter.
    async fn bury(
        &self,
        letter: &DeadLetter,
        stored: Option<&(Found, Waiting)>,
        gone: impl Fn(Option<&Found>) -> Turns,
    ) -> Result<()> {
        let place = Letter::new(&letter.batch.scope, letter.batch.id, letter.acceptance);
        loop {
            let before = self.letter_at(&place).await?;
            let may_stay = stored.map_or_else(
                || gone(before.as_ref()),
                |(found, _)| Turns::in_message(found),
            );
            let batch = merged(letter, before.as_ref(), &may_stay, &place)?;
            let is_empty = batch.turns.is_empty() && !letter.batch.turns.is_empty();
            let last = before.as_ref().map(|before| before.sequence);
            if is_empty {
                if let Some(last) = last {
                    self.link.delete(&self.names.letters, last).await?;
                }
                return Ok(());
            }
            let headers = headers(letter, stored, before.as_ref())?;
            let payload = bytes::Bytes::from(message::json(&batch));
            let size = payload.len() as u64;
            let put = self.link.put(place.subject(&self.names), headers, payload);
            match put.await {
                // Somebody else wrote this letter meanwhile.
                Err(Failure {
                    code: Some(code::WRONG_LAST_SEQUENCE),
                    ..
                }) => {}
                put => {
                    put?;
                    return self.note_letter(&place.tenant, size).await;
                }
            }
        }
    }

    /// Moves what cannot be read as it is, for a version or a person that can read it.
    pub async fn bury_unread(
        &self,
        waiting: &Waiting,
        sequence: u64,
        hash: Option<&str>,
        payload: &bytes::Bytes,
        about: &Circumstances,
    ) -> Result<()> {
        let place = Letter {
            position: waiting.position(sequence),
            tenant: waiting.tenant.clone(),
            space: waiting.space.clone(),
            batch: waiting.batch,
        };
        loop {
            let before = self.letter_at(&place).await?;
            let last = before.map_or(0, |before| before.sequence);
            let headers = message::of_letter(about, hash, last);
            let put = self
                .link
                .put(place.subject(&self.names), headers, payload.clone());
            match put.await {
                Err(Failure {
                    code: Some(code::WRONG_LAST_SEQUENCE),
                    ..
                }) => {}
                put => {
                    put?;
                    return self.note_letter(&place.tenant, payload.len() as u64).await;
                }
            }
        }
    }

    /// Takes everything at a position out of the queue, whoever holds it.
    async fn let_go(&self, scope: &Scope, batch: BatchId, position: u64) -> Result<()> {
        let held = self.buffer().at(position);
        self.acknowledge(&[position]).await?;
        for (found, waiting) in self.all_waiting(scope, batch).await? {
            let is_ours = waiting.position(found.sequence) == position;
            if is_ours && !held.iter().any(|held| held.sequence == found.sequence) {
                self.link.delete(&self.names.ingest, found.sequence).await?;
            }
        }
        Ok(())
    }
}

/// Turns that may be in a letter.
enum Turns {
    All,
    These(HashSet<TurnId>),
    None,
}

impl Turns {
    fn in_message(found: &Found) -> Self {
        match serde_json::from_slice::<Batch>(&found.payload) {
            Ok(batch) => Self::These(batch.turns.iter().map(|turn| turn.id).collect()),
            Err(_) => Self::All,
        }
    }

    fn of_a_letter(before: Option<&Found>) -> Self {
        before.map_or(Self::None, |_| Self::All)
    }

    fn contain(&self, turn: TurnId) -> bool {
        match self {
            Self::All => true,
            Self::These(turns) => turns.contains(&turn),
            Self::None => false,
        }
    }
}

fn merged(
    letter: &DeadLetter,
    before: Option<&Found>,
    may_stay: &Turns,
    place: &Letter,
) -> Result<Batch> {
    let mut batch = letter.batch.clone();
    let Some(before) = before else {
        batch.turns.retain(|turn| may_stay.contain(turn.id));
        return Ok(batch);
    };
    let earlier = message::letter(before, &batch.scope, place.batch, place.position)?.0;
    let mut turns = earlier.batch.turns;
    turns.retain(|turn| !batch.turns.contains(turn));
    if let Turns::These(_) = may_stay {
        turns.retain(|turn| may_stay.contain(turn.id));
    }
    batch.turns.retain(|turn| may_stay.contain(turn.id));
    batch.turns.splice(0..0, turns);
    Ok(batch)
}

fn headers(
    letter: &DeadLetter,
    stored: Option<&(Found, Waiting)>,
    before: Option<&Found>,
) -> Result<HeaderMap> {
    let known = before.map(message::circumstances).transpose()?;
    let failed_at = letter.failed_at.timestamp_micros();
    let accepted_at = stored.map(|(_, waiting)| waiting.accepted_at);
    let about = Circumstances {
        reason: letter.reason.clone(),
        failed_at,
        attempts: letter.attempts,
        accepted_at: accepted_at
            .or(known.map(|known| known.accepted_at))
            .unwrap_or(failed_at),
    };
    let messages = stored.map(|(found, _)| found).into_iter().chain(before);
    let mut hashes = messages.filter_map(|found| text(&found.headers, PAYLOAD_HASH));
    let last = before.map_or(0, |before| before.sequence);
    Ok(message::of_letter(&about, hashes.next(), last))
}
