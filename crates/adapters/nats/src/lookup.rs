//! Where a batch is, asked of subjects first: what holds nothing is told without a payload.

use std::collections::HashMap;

use futures::{Stream, StreamExt, TryStreamExt};
use memfleet_domain::Scope;
use memfleet_domain::ids::{BatchId, SpaceId, TenantId};
use memfleet_domain::ingestion::Batch;
use memfleet_ports::queue::Place;
use memfleet_ports::store::{Result, StoreError};

use crate::api::Found;
use crate::shared::Shared;
use crate::subject::{Letter, Waiting};

/// Messages that are read at once: each may be as large as a request.
pub const AT_ONCE: usize = 4;

/// The batch of a message that waits.
fn read(found: &Found) -> Result<Batch> {
    serde_json::from_slice(&found.payload).map_err(|cause| {
        let (category, column) = (cause.classify(), cause.column());
        let place = found.sequence;
        let what = format!("the queued batch at {place}: {category:?} at byte {column}");
        StoreError::Damaged(what)
    })
}

impl Shared {
    /// The message of a batch that waits; the youngest, where a part of the batch is being taken out.
    pub async fn find_waiting(
        &self,
        scope: &Scope,
        batch: BatchId,
    ) -> Result<Option<(Found, Waiting)>> {
        let all = self.all_waiting(scope, batch).await?;
        let youngest = all.into_iter().max_by_key(|(found, _)| found.sequence);
        Ok(youngest)
    }

    /// Every message of a batch that waits. A forget that parts the batch between the listing and the reading puts its rest
    /// under another subject: where anything listed is gone, it is listed again, so that what waits is never taken for gone.
    pub async fn all_waiting(
        &self,
        scope: &Scope,
        batch: BatchId,
    ) -> Result<Vec<(Found, Waiting)>> {
        let filter = self.names.waiting_batch(scope, batch);
        loop {
            if let Some(all) = self.read_waiting(&filter).await? {
                return Ok(all);
            }
        }
    }

    /// Every message that waits under these subjects; `None` where one of them is gone meanwhile.
    async fn read_waiting(&self, filter: &str) -> Result<Option<Vec<(Found, Waiting)>>> {
        let stream = &self.names.ingest;
        let subjects = self.link.subjects(stream, filter).await?;
        let parsed = subjects.into_iter().filter_map(|subject| {
            let waiting = Waiting::parse(&self.names, &subject)?;
            Some((subject, waiting))
        });
        let found = futures::stream::iter(parsed).map(|(subject, waiting)| async move {
            let found = self.link.last(stream, &subject).await?;
            Ok::<_, StoreError>(found.map(|found| (found, waiting)))
        });
        let found: Vec<_> = found.buffered(AT_ONCE).try_collect().await?;
        Ok(found.into_iter().collect())
    }

    /// Where letters are, oldest first.
    pub async fn letter_places(&self, filter: &str) -> Result<Vec<Letter>> {
        let subjects = self.link.subjects(&self.names.letters, filter).await?;
        let parsed = subjects.iter();
        let parsed = parsed.filter_map(|subject| Letter::parse(&self.names, subject));
        let mut places: Vec<_> = parsed.collect();
        places.sort_unstable();
        Ok(places)
    }

    /// The letters at these places, without those that are gone meanwhile; a few are read ahead.
    pub fn read_letters(
        &self,
        places: Vec<Letter>,
    ) -> impl Stream<Item = Result<(Found, Letter)>> + Send + '_ {
        let found = futures::stream::iter(places).map(move |place| async move {
            let found = self.letter_at(&place).await?;
            Ok::<_, StoreError>(found.map(|found| (found, place)))
        });
        found
            .buffered(AT_ONCE)
            .try_filter_map(|found| std::future::ready(Ok(found)))
    }

    /// The letter at this place.
    pub async fn letter_at(&self, place: &Letter) -> Result<Option<Found>> {
        let subject = place.subject(&self.names);
        Ok(self.link.last(&self.names.letters, &subject).await?)
    }

    pub async fn place(&self, scope: &Scope, batch: BatchId) -> Result<Option<Place>> {
        let waiting = self.names.waiting_batch(scope, batch);
        let buried = self.names.letters_of_batch(scope, batch);
        let waits = async || {
            let subjects = self.link.subjects(&self.names.ingest, &waiting).await?;
            Ok::<_, StoreError>(!subjects.is_empty())
        };
        if waits().await? {
            return Ok(Some(Place::Waiting));
        }
        // On the way to the dead letters it is in both places for a moment, and in neither never.
        let letters = self.link.subjects(&self.names.letters, &buried).await?;
        if !letters.is_empty() {
            return Ok(Some(Place::Buried));
        }
        // A replay may have come between the two questions.
        Ok(waits().await?.then_some(Place::Waiting))
    }

    pub async fn waiting(&self, scope: &Scope, batch: BatchId) -> Result<Option<Batch>> {
        let found = self.find_waiting(scope, batch).await?;
        found.map(|(found, _)| read(&found)).transpose()
    }

    /// Subjects have digests of spaces: the names are read from the youngest batch of each.
    pub async fn waiting_spaces(&self, tenant: &TenantId, limit: usize) -> Result<Vec<SpaceId>> {
        let stream = &self.names.ingest;
        let filter = self.names.waiting_of_tenant(tenant);
        let mut youngest: HashMap<String, (i64, String)> = HashMap::new();
        for subject in self.link.subjects(stream, &filter).await? {
            if let Some(waiting) = Waiting::parse(&self.names, &subject) {
                let place = (waiting.accepted_at, subject);
                let known = youngest.entry(waiting.space).or_default();
                *known = place.max(std::mem::take(known));
            }
        }
        let mut places: Vec<_> = youngest.into_values().collect();
        places.sort_unstable_by(|one, other| other.cmp(one));
        places.truncate(limit);
        let found = futures::stream::iter(places).map(|(_, subject)| async move {
            let found = self.link.last(stream, &subject).await?;
            // One that cannot be read becomes a dead letter.
            let batch = found.and_then(|found| read(&found).ok());
            Ok::<_, StoreError>(batch.map(|batch| batch.scope.space))
        });
        let found: Vec<_> = found.buffered(AT_ONCE).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    pub async fn waiting_span(&self, scope: &Scope) -> Result<Option<(u64, u64)>> {
        let (stream, fresh) = (&self.names.ingest, self.names.fresh_of(scope));
        let put_back = self.names.put_back_of(scope);
        let (first, last, put_back) = futures::try_join!(
            self.link.first(stream, &fresh),
            self.link.last(stream, &fresh),
            self.link.subjects(stream, &put_back),
        )?;
        let fresh = [first, last].into_iter().flatten();
        let fresh = fresh.map(|found| found.sequence);
        let old = put_back.iter().filter_map(|subject| {
            let waiting = Waiting::parse(&self.names, subject)?;
            waiting.position
        });
        let positions: Vec<u64> = fresh.chain(old).collect();
        let span = positions.iter().min().zip(positions.iter().max());
        Ok(span.map(|(first, last)| (*first, *last)))
    }
}
