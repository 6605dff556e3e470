//! Dead letters on their way back into the queue, at their old positions.

use memfleet_domain::Scope;
use memfleet_ports::store::Result;

use crate::api::Found;
use crate::message::{self, PAYLOAD_HASH, text};
use crate::shared::Shared;
use crate::subject::{Letter, Waiting};

impl Shared {
    /// Puts letters back at their old places. One whose batch waits again already (a caller's retry) stays a letter: nothing
    /// tells that all its turns are in what waits.
    pub async fn replay(&self, scope: &Scope, acceptances: &[u64]) -> Result<u64> {
        let mut places = self.letter_places(&self.names.letters_of(scope)).await?;
        places.retain(|place| acceptances.is_empty() || acceptances.contains(&place.position));
        let mut replayed = 0;
        for place in places {
            replayed += u64::from(self.requeue(scope, &place).await?);
        }
        Ok(replayed)
    }

    /// Whether the letter is in the queue now.
    async fn requeue(&self, scope: &Scope, place: &Letter) -> Result<bool> {
        loop {
            let Some(found) = self.letter_at(place).await? else {
                return Ok(false);
            };
            let waiting = self.find_waiting(scope, place.batch).await?;
            let is_there = waiting
                .as_ref()
                .is_some_and(|(other, waiting)| waiting.position(other.sequence) == place.position);
            if waiting.is_some() && !is_there {
                return Ok(false);
            }
            // It is there already where an earlier replay stopped half-way.
            let put = if is_there {
                None
            } else {
                self.put_back(scope, place, &found).await?
            };
            if self
                .link
                .delete(&self.names.letters, found.sequence)
                .await?
            {
                return Ok(true);
            }
            // The letter was rewritten meanwhile: what was put back may hold what was forgotten.
            if let Some(sequence) = put {
                self.link.delete(&self.names.ingest, sequence).await?;
            }
        }
    }

    /// Where the letter is in the queue now; nothing when it had been put back before, and was applied since.
    async fn put_back(&self, scope: &Scope, place: &Letter, found: &Found) -> Result<Option<u64>> {
        let (letter, about) = message::letter(found, scope, place.batch, place.position)?;
        let (turns, bytes) = (letter.batch.turns.len(), found.payload.len());
        let accepted_at = message::instant(about.accepted_at);
        let mut waiting = Waiting::new(scope, place.batch, turns, bytes, accepted_at);
        waiting.position = Some(place.position);
        let id = format!("replay-{}-{}", place.space, found.sequence);
        let headers = message::of_batch(&id, text(&found.headers, PAYLOAD_HASH));
        let subject = waiting.subject(&self.names);
        let stored = self.offer(&subject, &headers, &found.payload).await?;
        self.announce(&waiting, stored.seq).await;
        Ok((!stored.duplicate).then_some(stored.seq))
    }
}
