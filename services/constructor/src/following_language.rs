//! Spaces whose language changes: once turns come that another model reads better than the one
//! whose vectors the space has, the space moves to that model ([`crate::ModelSwitcher`]).

use memfleet_domain::embedding::{EmbeddingSpace, HeldEmbeddings};
use memfleet_domain::{Fault, Scope};
use memfleet_ports::feed::{Change, IndexFeed};
use memfleet_ports::ledger::Ledger;
use memfleet_ports::store::Result;

use crate::Constructor;

/// Turns that came last, and tell which model reads a space.
pub(crate) const SAMPLE: usize = 50;

/// Changes that are looked through for them.
const MAX_CHANGES: u64 = 3_200;

impl Constructor {
    /// The embedding space of vectors for texts that came just now: the served one, or in a space
    /// without turns that of the model which reads them. None where nobody can say.
    pub(crate) async fn embedding_for(
        &self,
        scope: &Scope,
        texts: &[String],
    ) -> Result<Option<EmbeddingSpace>> {
        let held = self.spaces.embeddings(scope).await?;
        let Some(served) = &held.served else {
            return Ok(self.embedder.space_for(texts).await.ok());
        };
        let first = self.follow_language(scope, &held, texts).await;
        let first = first.unwrap_or_else(|fault| {
            tracing::debug!(%scope, reason = %fault.reason, "the space's language is not followed: {fault}");
            None
        });
        Ok(first.or_else(|| Some(served.clone())))
    }

    /// Notes where a space is to move, if another model than the default reads the texts, and a
    /// fifth of the last turns or more; gives the model's embedding space where the space has no
    /// turns yet, whatever the operator ordered. Nothing moves to the default model: the other one
    /// reads its language, too.
    async fn follow_language(
        &self,
        scope: &Scope,
        held: &HeldEmbeddings,
        texts: &[String],
    ) -> std::result::Result<Option<EmbeddingSpace>, Fault> {
        let read_by = self.embedder.space_for(texts).await?;
        let is_served = held.served.as_ref() == Some(&read_by);
        if is_served || read_by == self.embedder.space().await? {
            return Ok(None);
        }
        let order = self.switches.order().await?;
        if order.is_some_and(|order| order.every_language) {
            return Ok(None);
        }
        if self.feed.head(scope).await? == 0 {
            return Ok(Some(read_by));
        }
        let mut latest = latest(&*self.feed, &*self.ledger, scope).await?;
        latest.extend_from_slice(texts);
        if self.embedder.space_for(&latest).await? == read_by
            && self.switches.follow_language(scope, &read_by).await?
        {
            tracing::info!(%scope, to = %read_by, "the space moves to the model that reads its language");
        }
        Ok(None)
    }
}

/// Texts of the turns that came last: [`SAMPLE`] of them, or as many as there are among the last
/// [`MAX_CHANGES`] changes, which may be derivations.
pub(crate) async fn latest(
    feed: &dyn IndexFeed,
    ledger: &dyn Ledger,
    scope: &Scope,
) -> std::result::Result<Vec<String>, Fault> {
    let head = feed.head(scope).await?;
    let mut window = SAMPLE as u64;
    loop {
        let after = head.saturating_sub(window);
        let page = feed.changes_after(scope, after, window as u32).await?;
        let stored = page.changes.iter().filter_map(|change| match change {
            Change::Stored(turn) => Some(turn.id),
            _ => None,
        });
        let mut stored: Vec<_> = stored.collect();
        if stored.len() < SAMPLE && after > 0 && window < MAX_CHANGES {
            window *= 4;
            continue;
        }
        let stored = stored.split_off(stored.len().saturating_sub(SAMPLE));
        let turns = ledger.turns(scope, &stored).await?;
        let texts = turns.iter();
        return Ok(texts
            .map(|turn| turn.accepted.content.searchable_text())
            .collect());
    }
}
