//! What a forget takes out of the queue and out of the dead letters.
//!
//! The rest of a batch is put back at its old position before the whole is deleted, and the bytes of what is deleted are
//! overwritten by the server. What was applied leaves the stream by its acknowledgement and not by this: its bytes stay in the
//! server's files until the server compacts them, which is a matter of encrypting these files.

use std::collections::HashSet;

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt};
use memfleet_domain::Scope;
use memfleet_domain::ingestion::Batch;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::store::Result;
use memfleet_ports::undelivered::{Matching, Parted, Undelivered, Unreadable};

use crate::lookup::AT_ONCE;
use crate::message;
use crate::names::space_token;
use crate::queue::NatsQueue;
use crate::shared::Shared;
use crate::subject::Waiting;

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

    async fn with_letters(&self, scopes: &[Scope]) -> Result<HashSet<Scope>> {
        if scopes.is_empty() {
            return Ok(HashSet::new());
        }
        self.shared.prepared().await?;
        if self.shared.has_no_letters().await? {
            return Ok(HashSet::new());
        }
        let places = self
            .shared
            .letter_places(&self.shared.names.all_letters())
            .await?;
        let spaces: HashSet<_> = places.into_iter().map(|place| place.space).collect();
        let lettered = scopes
            .iter()
            .filter(|scope| spaces.contains(&space_token(scope)));
        Ok(lettered.cloned().collect())
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
                return Ok(Vec::new());
            };
            let found = match self.link.last(stream, &subject).await? {
                Some(found) => vec![(found, waiting)],
                // Applied meanwhile, or parted by another forget: then its rest waits elsewhere.
                None => self.all_waiting(scope, waiting.batch).await?,
            };
            let parted = found.iter().filter_map(|(found, waiting)| {
                let position = waiting.position(found.sequence);
                match serde_json::from_slice::<Batch>(&found.payload) {
                    Ok(batch) => Parted::of(&batch, position, filter),
                    Err(_) => unreadable
                        .goes(message::instant(waiting.accepted_at))
                        .then(|| Parted::unreadable(waiting.batch, position)),
                }
            });
            Ok(parted.collect())
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
                return Ok(Vec::new());
            };
            let parted = match serde_json::from_slice::<Batch>(&found.payload) {
                Ok(batch) => Parted::of(&batch, place.position, filter),
                Err(_) => {
                    // Without its circumstances nobody can tell when it was given up: as if for ever.
                    let failed_at = message::circumstances(&found).map(|about| about.failed_at);
                    unreadable
                        .goes(message::instant(failed_at.unwrap_or(i64::MIN)))
                        .then(|| Parted::unreadable(place.batch, place.position))
                }
            };
            Ok(parted.into_iter().collect())
        });
        in_order(parted.buffered(AT_ONCE)).await
    }
}

async fn in_order(parted: impl futures::Stream<Item = Result<Vec<Parted>>>) -> Result<Vec<Parted>> {
    let mut all: Vec<Parted> = parted.try_concat().await?;
    all.sort_by_key(|parted| parted.acceptance);
    // A rest may be found by its own subject and by that of the whole.
    all.dedup();
    Ok(all)
}
